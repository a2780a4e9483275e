//! What holds when nothing else was said: the store, the name of this replica; and what of a store may be shown.

mod redact;

pub use redact::redacted;

use leasehold::ReplicaId;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Where the state of a host's services lives, for root and for processes without a home.
const SYSTEM_STATE: &str = "/var/lib";

/// The URL of the default store: a SQLite file in the state directory of the user.
///
/// `$XDG_STATE_HOME/leasehold/leases.db`, else `$HOME/.local/state/leasehold/leases.db`; for root, and without a home
/// (as cron and systemd may start a process), `/var/lib/leasehold/leases.db`.
#[must_use]
pub fn default_store() -> String {
    let root = rustix::process::geteuid().is_root();
    let dir = state_dir(root, env::var_os("XDG_STATE_HOME"), env::var_os("HOME"));
    format!("sqlite:{}", encoded(&dir.join("leasehold/leases.db")))
}

/// A store's URL that means the same from every directory: the command may change its own, and then asks the store that
/// `LEASEHOLD_STORE` names.
#[must_use]
pub fn anchored(url: &str) -> String {
    match (url.strip_prefix("sqlite:"), env::current_dir()) {
        (Some(path), Ok(here)) if !path.is_empty() && !path.starts_with(['/', ':', '?']) => {
            format!("sqlite:{}/{path}", encoded(&here))
        }
        _ => url.to_owned(),
    }
}

/// A path as part of a URL.
fn encoded(path: &Path) -> String {
    let mut url = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'+' | b'=' | b',' | b'@' | b':' => url.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => url.push(byte.into()),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// Relative paths are ignored, as the XDG rules ask: leases must not depend on where a process was started.
fn state_dir(root: bool, xdg: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    match (absolute(xdg), root, absolute(home)) {
        (Some(xdg), ..) => xdg,
        // `HOME=/` is what a daemon without an account gets, and never a place to write.
        (None, false, Some(home)) if home != Path::new("/") => home.join(".local/state"),
        _ => PathBuf::from(SYSTEM_STATE),
    }
}

/// A name for a replica that was given none: host, process id and eight random hex digits.
#[must_use]
pub fn default_replica() -> ReplicaId {
    let own = ReplicaId::generate();
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    // A host whose name cannot be part of a replica's name is odd, not a reason to refuse work.
    ReplicaId::new(format!("{host}-{own}")).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_directory_is_that_of_the_user_or_of_the_host() {
        let dir = |root, xdg: Option<&str>, home: Option<&str>| {
            state_dir(root, xdg.map(Into::into), home.map(Into::into)).display().to_string()
        };
        assert_eq!(dir(false, Some("/s"), Some("/home/u")), "/s");
        assert_eq!(dir(true, Some("/s"), Some("/root")), "/s");
        assert_eq!(dir(false, None, Some("/home/u")), "/home/u/.local/state");
        assert_eq!(dir(false, Some("relative"), Some("/home/u")), "/home/u/.local/state");
        assert_eq!(dir(false, Some(""), Some("")), "/var/lib");
        assert_eq!(dir(false, None, Some("/")), "/var/lib");
        assert_eq!(dir(true, None, Some("/root")), "/var/lib");
        assert_eq!(dir(false, None, None), "/var/lib");
    }

    #[test]
    fn a_path_survives_being_part_of_a_url() {
        assert_eq!(encoded(Path::new("/a b/50%/é?")), "/a%20b/50%25/%C3%A9%3F");
        assert_eq!(anchored("sqlite:/abs"), "sqlite:/abs");
        assert_eq!(anchored("sqlite:///abs"), "sqlite:///abs");
        assert_eq!(anchored("sqlite::memory:"), "sqlite::memory:");
        assert_eq!(anchored("redis://h"), "redis://h");
        let here = encoded(&env::current_dir().unwrap());
        assert_eq!(anchored("sqlite:x.db?busy_timeout=1s"), format!("sqlite:{here}/x.db?busy_timeout=1s"));
    }

    #[test]
    fn two_default_replicas_differ() {
        let (a, b) = (default_replica(), default_replica());
        assert_ne!(a, b);
        assert!(a.as_str().contains(&std::process::id().to_string()));
    }
}
