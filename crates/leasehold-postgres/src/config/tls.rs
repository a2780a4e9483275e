//! How the other side is known, and how we are.

use super::{Secret, refuse};
use leasehold_core::StoreErrorKind;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How much of the other side is checked: `sslmode`, as PostgreSQL's own clients take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Nothing is encrypted.
    Disable,
    /// Encrypted if the server can, and whoever it is: no protection against one who stands between.
    Prefer,
    /// Encrypted, whoever it is.
    Require,
    /// Its certificate must come from an authority that is known.
    VerifyCa,
    /// And must be for the host that was asked for.
    VerifyFull,
}

/// Which authorities are known.
#[derive(Clone)]
pub(crate) enum Authority {
    /// Those of the system.
    System,
    /// These, in PEM.
    Pem(Vec<u8>),
}

/// Our own certificate and its key, in PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Secret,
}

/// All that is known about encryption.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) trust: Trust,
    pub(crate) authority: Authority,
    pub(crate) identity: Option<Identity>,
}

impl Trust {
    pub(super) fn parse(text: &str) -> Result<Self, StoreErrorKind> {
        Ok(match text {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            "allow" => {
                return refuse("sslmode=allow prefers what is not encrypted: write prefer or require".into());
            }
            _ => return refuse("sslmode is disable, prefer, require, verify-ca or verify-full".into()),
        })
    }

    /// What the client is to ask the server for.
    pub(crate) const fn mode(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

impl Tls {
    /// What encrypts a connection.
    pub(crate) fn connector(&self) -> Result<MakeRustlsConnect, StoreErrorKind> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(Verifier::new(self, provider.clone())?);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .or_else(|error| refuse(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let certificates = certificates("sslcert", &identity.certificate)?;
                let key = PrivateKeyDer::from_pem_slice(identity.key.reveal().as_bytes())
                    .or_else(|_| refuse("sslkey holds no private key in PEM, or an encrypted one".into()))?;
                builder
                    .with_client_auth_cert(certificates, key)
                    .or_else(|error| refuse(format!("sslcert and sslkey do not fit: {error}")))?
            }
        };
        Ok(MakeRustlsConnect::new(config))
    }
}

fn certificates(key: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, StoreErrorKind> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => refuse(format!("{key} holds no certificates in PEM")),
    }
}

/// Checks as much as `sslmode` asks for. That the other side has the key of its certificate is always checked.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
    checks_name: bool,
}

impl Verifier {
    fn new(tls: &Tls, provider: Arc<CryptoProvider>) -> Result<Self, StoreErrorKind> {
        let chain = match tls.trust {
            Trust::Disable | Trust::Prefer | Trust::Require => None,
            Trust::VerifyCa | Trust::VerifyFull => {
                let roots = Arc::new(roots(&tls.authority)?);
                let built = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                Some(built.or_else(|error| refuse(format!("sslrootcert cannot be used: {error}")))?)
            }
        };
        Ok(Self { provider, chain, checks_name: tls.trust == Trust::VerifyFull })
    }
}

fn roots(authority: &Authority) -> Result<RootCertStore, StoreErrorKind> {
    let mut roots = RootCertStore::empty();
    match authority {
        Authority::System => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Authority::Pem(pem) => {
            for certificate in certificates("sslrootcert", pem)? {
                roots
                    .add(certificate)
                    .or_else(|error| refuse(format!("sslrootcert holds no authority: {error}")))?;
            }
        }
    }
    Ok(roots)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::{CertificateError as Bad, Error};
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last of all: but for it the certificate is good.
            Err(Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }))
                if !self.checks_name =>
            {
                Ok(ServerCertVerified::assertion())
            }
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
