//! Where a store is and how patient it is, from an address or from code.

use crate::boot::{self, HostClock};
use leasehold_core::{Clock, StoreErrorKind};
use percent_encoding::percent_decode_str;
use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The longest busy timeout and the longest safety poll.
pub const MAX_PATIENCE: Duration = Duration::from_secs(60);
/// The shortest safety poll.
pub const MIN_SAFETY_POLL: Duration = Duration::from_millis(10);

/// The settings of a store.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) path: PathBuf,
    pub(crate) busy_timeout: Duration,
    pub(crate) safety_poll: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) boot: Option<Arc<str>>,
}

impl Config {
    /// The defaults for the file at `path`: it waits 1 s for a lock of another process, and looks once a second for
    /// changes of which no event told.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            busy_timeout: Duration::from_secs(1),
            safety_poll: Duration::from_secs(1),
            clock: Arc::new(HostClock::new()),
            boot: None,
        }
    }

    /// Reads an address: `PATH`, taken literally, or `sqlite:PATH` or `sqlite:///ABSOLUTE/PATH`, percent-decoded, with
    /// `?busy_timeout=500ms&safety_poll=2s` after it if wanted.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] for a store that could not be shared (`:memory:`, no path), another scheme, a
    /// parameter that is unknown, and a value out of its range.
    pub fn parse(address: &str) -> Result<Self, StoreErrorKind> {
        let Some(rest) = address.strip_prefix("sqlite:") else {
            return Self::literal(address);
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = match path.strip_prefix("//") {
            None => path,
            Some(path) if path.starts_with('/') => path,
            Some(path) => {
                return refuse(format!(
                    "sqlite://{path} names a host; write sqlite:{path} for a relative path or sqlite:///… for an \
                     absolute one"
                ));
            }
        };
        let path = OsString::from_vec(percent_decode_str(path).collect());
        let mut config = Self::at(PathBuf::from(path))?;
        for (key, value) in query.split('&').filter(|pair| !pair.is_empty()).map(pair) {
            config = match key {
                "busy_timeout" => config.with_busy_timeout(duration(key, value)?)?,
                "safety_poll" => config.with_safety_poll(duration(key, value)?)?,
                _ => {
                    return refuse(format!(
                        "a sqlite store has no parameter {key:?}: it knows busy_timeout and safety_poll"
                    ));
                }
            };
        }
        Ok(config)
    }

    fn literal(path: &str) -> Result<Self, StoreErrorKind> {
        if let Some((scheme, _)) = path.split_once("://") {
            return refuse(format!("{scheme}:// is no address of a sqlite store: write sqlite:PATH"));
        }
        if path.starts_with("file:") {
            return refuse("file: addresses of SQLite are not taken: write sqlite:PATH".into());
        }
        Self::at(PathBuf::from(path))
    }

    fn at(path: PathBuf) -> Result<Self, StoreErrorKind> {
        check_path(&path)?;
        Ok(Self::new(path))
    }

    /// Another busy timeout, 0 to [`MAX_PATIENCE`]: how long a request waits for another process that has the
    /// database locked. Longer than the trust left of a lease it helps nobody.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_busy_timeout(self, busy_timeout: Duration) -> Result<Self, StoreErrorKind> {
        if busy_timeout > MAX_PATIENCE {
            return refuse(format!(
                "a busy_timeout of {busy_timeout:?} is too long: at most {MAX_PATIENCE:?}"
            ));
        }
        Ok(Self { busy_timeout, ..self })
    }

    /// Another safety poll, [`MIN_SAFETY_POLL`] to [`MAX_PATIENCE`]: how long a change may go unnoticed whose event
    /// was lost. It reads shared memory, not the disk.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_safety_poll(self, safety_poll: Duration) -> Result<Self, StoreErrorKind> {
        if !(MIN_SAFETY_POLL..=MAX_PATIENCE).contains(&safety_poll) {
            return refuse(format!(
                "a safety_poll of {safety_poll:?} is out of range: {MIN_SAFETY_POLL:?} to {MAX_PATIENCE:?}"
            ));
        }
        Ok(Self { safety_poll, ..self })
    }

    /// Another clock, for tests. All stores on one file must use the same one, and it is read on a thread of the
    /// store: a clock that belongs to an async runtime will not do.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Another boot id, for tests. Claims made under another one are expired.
    #[must_use]
    pub fn with_boot(self, boot: impl Into<Arc<str>>) -> Self {
        Self { boot: Some(boot.into()), ..self }
    }

    /// The boot id to use.
    pub(crate) fn boot_id(&self) -> Result<Arc<str>, StoreErrorKind> {
        self.boot.clone().map_or_else(boot::boot_id, Ok)
    }
}

/// Refuses what SQLite would take for a database that only this process sees.
pub(crate) fn check_path(path: &Path) -> Result<(), StoreErrorKind> {
    let bytes = path.as_os_str().as_encoded_bytes();
    match bytes {
        b"" => refuse("a sqlite store needs the path of a file".into()),
        b":memory:" => refuse(
            ":memory: would give every process leases of its own: name a file, or use the memory store"
                .into(),
        ),
        _ if bytes.contains(&0) => refuse("a path cannot hold a NUL byte".into()),
        _ => Ok(()),
    }
}

fn refuse<T>(problem: String) -> Result<T, StoreErrorKind> {
    Err(StoreErrorKind::Config(problem.into()))
}

fn pair(text: &str) -> (&str, &str) {
    text.split_once('=').unwrap_or((text, ""))
}

fn duration(key: &str, value: &str) -> Result<Duration, StoreErrorKind> {
    humantime::parse_duration(value)
        .or_else(|_| refuse(format!("{key}={value} is no duration like 500ms or 2s")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(address: &str) -> String {
        Config::parse(address).map(|c| format!("{c:?} was taken")).unwrap_or_else(|kind| kind.to_string())
    }

    #[test]
    fn an_address_names_a_file_and_its_patience() {
        for (address, path) in [
            ("sqlite:leases.db", "leases.db"),
            ("sqlite:/var/lib/x.db", "/var/lib/x.db"),
            ("sqlite:///var/lib/x.db", "/var/lib/x.db"),
            ("sqlite:a%20b%3f.db?", "a b?.db"),
            ("a b?c=1%20.db", "a b?c=1%20.db"),
            ("ünï/ço dé.db", "ünï/ço dé.db"),
        ] {
            assert_eq!(Config::parse(address).unwrap().path, PathBuf::from(path), "{address}");
        }
        let config = Config::parse("sqlite:x?busy_timeout=500ms&safety_poll=2s").unwrap();
        assert_eq!(
            (config.busy_timeout, config.safety_poll),
            (Duration::from_millis(500), Duration::from_secs(2))
        );
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason() {
        for (address, reason) in [
            ("", "needs the path"),
            ("sqlite:", "needs the path"),
            (":memory:", "leases of its own"),
            ("sqlite::memory:", "leases of its own"),
            ("sqlite:x?mode=memory", "no parameter \"mode\""),
            ("sqlite:x?busy_timeout=soon", "no duration"),
            ("sqlite:x?busy_timeout=2m", "too long"),
            ("sqlite:x?safety_poll=0s", "out of range"),
            ("sqlite://host/x", "names a host"),
            ("redis://host/0", "redis:// is no address"),
            ("file:x.db", "not taken"),
            ("sqlite:a%00b", "NUL"),
        ] {
            assert!(problem(address).contains(reason), "{address}: {}", problem(address));
        }
    }
}
