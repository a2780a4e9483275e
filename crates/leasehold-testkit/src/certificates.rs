//! An authority of a test's own, and what it signed.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Files in PEM.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// Of the authority.
    pub ca: PathBuf,
    /// For a client, who is called [`Certificates::CLIENT`].
    pub client_cert: PathBuf,
    /// Its key.
    pub client_key: PathBuf,
    pub(crate) server_cert: PathBuf,
    pub(crate) server_key: PathBuf,
}

impl Certificates {
    /// The common name in the client's certificate.
    pub const CLIENT: &'static str = "client";

    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self {
            ca: dir.join("ca.pem"),
            client_cert: dir.join("client.pem"),
            client_key: dir.join("client.key"),
            server_cert: dir.join("server.pem"),
            server_key: dir.join("server.key"),
        }
    }

    /// What a server's configuration says of them; `tls-port` is the caller's.
    pub(super) fn lines(&self) -> [(&'static str, String); 4] {
        [
            ("tls-cert-file", self.server_cert.display().to_string()),
            ("tls-key-file", self.server_key.display().to_string()),
            ("tls-ca-cert-file", self.ca.display().to_string()),
            ("tls-auth-clients", "yes".to_owned()),
        ]
    }

    /// The parameters of a store's address for a client.
    #[must_use]
    pub fn query(&self) -> String {
        let (ca, cert, key) = (self.ca.display(), self.client_cert.display(), self.client_key.display());
        format!("ca={ca}&cert={cert}&key={key}")
    }

    /// Makes them.
    pub(crate) fn make(&self) {
        // A test that cannot have certificates has failed; nothing here depends on anything outside of it.
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "an authority for tests");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
        fs::write(&self.ca, authority.pem()).expect("a file");
        let server = ("server", &self.server_cert, &self.server_key);
        let client = (Self::CLIENT, &self.client_cert, &self.client_key);
        for (who, cert, key) in [server, client] {
            let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
            let pair = KeyPair::generate().expect("a key");
            let mut wanted = CertificateParams::new(names).expect("names");
            // Not the name of its issuer, or it would pass for its own.
            wanted.distinguished_name.push(DnType::CommonName, who);
            let signed = wanted.signed_by(&pair, &authority).expect("a certificate");
            fs::write(cert, signed.pem()).expect("a file");
            fs::write(key, pair.serialize_pem()).expect("a file");
        }
    }
}
