//! What went wrong on the way to a store error: raw faults, and what they are called outside.

use leasehold_core::{LeaseName, StoreError, StoreErrorKind, Verb};
use redis::{ErrorKind, RedisError};
use std::{sync::Arc, time::Duration};

/// A fault as it was met, before it is known for which verb and lease.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Fault {
    /// The client or the server said so.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// Nothing came within the time that a server has.
    #[error("no answer within {0:?}")]
    Silence(Duration),
    /// We say so.
    #[error(transparent)]
    Known(#[from] StoreErrorKind),
}

/// A fault, and whether the change it interrupted may nevertheless have been made.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// False: certainly nothing was changed.
    pub(crate) perhaps_done: bool,
}

/// Nothing was changed.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self { fault, perhaps_done: false }
    }
}

impl From<StoreErrorKind> for Failure {
    fn from(kind: StoreErrorKind) -> Self {
        Fault::Known(kind).into()
    }
}

/// An error that answers a request: one from the server refused it whole, since a script that is refused midway takes back
/// what it wrote, and says so in another way where it cannot; any other leaves open whether the server had it.
impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let refused = error.code().is_some() || error.is_connection_refusal();
        Self { perhaps_done: !refused, fault: Fault::Redis(error) }
    }
}

impl Failure {
    /// The same, of a request that was perhaps done before it failed.
    pub(crate) const fn or_done(mut self, perhaps: bool) -> Self {
        self.perhaps_done |= perhaps;
        self
    }

    pub(crate) const fn is_unwitnessed(&self) -> bool {
        matches!(self.fault, Fault::Known(StoreErrorKind::Unwitnessed))
    }
}

/// What an error means for the connection it came over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is as good as before.
    Keep,
    /// It leads to a server that is gone, silent, or not in charge any more: look for the one that is.
    GiveUp,
}

/// What an error means for its connection.
pub(crate) fn verdict(error: &RedisError) -> Verdict {
    let code = code(error);
    let demoted = matches!(code, Some("READONLY" | "MASTERDOWN" | "LOADING"));
    // With a changed password old connections live on, and new ones say clearly what is wrong.
    let stranger = matches!(code, Some("NOAUTH" | "NOREPLICAS" | "MISCONF"));
    let broken = error.is_io_error() || error.is_timeout() || error.is_connection_dropped();
    let unreadable = error.kind() == ErrorKind::Parse;
    if (demoted || broken || unreadable) && !stranger { Verdict::GiveUp } else { Verdict::Keep }
}

impl Fault {
    /// A value that we did not write or cannot read.
    pub(crate) fn damage(key: impl Into<Arc<str>>, problem: impl Into<Arc<str>>) -> Self {
        Self::Known(StoreErrorKind::Corrupt { key: key.into(), problem: problem.into() })
    }

    /// The fault as the outside knows it.
    pub(crate) fn told(self, store: &Arc<str>, verb: Verb, lease: Option<&LeaseName>) -> StoreError {
        let mut error = StoreError::new(self.kind(), verb, store.clone());
        // Such a server takes the greeting of TLS for a request that is not complete yet.
        let without_tls = verb == Verb::Connect && store.starts_with("rediss");
        if let Some(lease) = lease {
            error = error.on(lease);
        }
        match self {
            Self::Redis(cause) => error.because(Quote(words(&cause, without_tls))),
            Self::Silence(_) if without_tls => error.because(Quote(WITHOUT_TLS.to_owned())),
            Self::Known(_) | Self::Silence(_) => error,
        }
    }

    fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Known(kind) => kind.clone(),
            Self::Silence(waited) => StoreErrorKind::TimedOut(*waited),
            Self::Redis(error) => redis_kind(error),
        }
    }
}

const WITHOUT_TLS: &str =
    "a server that does not speak TLS there is silent, too: then the address begins with redis, not rediss";
const NO_REDIS: &str = "what answers there does not speak the protocol of Redis";

/// An error of the client's in words for people.
fn words(error: &RedisError, without_tls: bool) -> String {
    let said = error.to_string();
    // The parser's own words are the numbers of bytes, a line each.
    if is_no_redis(error) {
        return NO_REDIS.to_owned();
    }
    if without_tls && (error.is_timeout() || said.ends_with("timed out")) {
        return format!("{said}; {WITHOUT_TLS}");
    }
    said
}

/// A Cluster's client hides the kind of what it met on each of its ways.
fn is_no_redis(error: &RedisError) -> bool {
    error.code().is_none() && (error.kind() == ErrorKind::Parse || error.to_string().contains("Parse error"))
}

/// What the client or the server said. Its own words hold their cause already; as a chain it would be told twice.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Quote(String);

/// The code of a refusal. Redis 6.2 hides it in a sentence where a script was refused:
/// `ERR Error running script (call to …): @user_script: 1: -READONLY You can't …`, or, where the script hands it on,
/// `@user_script: 1: -READONLY You can't …`.
fn code(error: &RedisError) -> Option<&str> {
    let code = error.code()?;
    let in_script = code == "ERR" || code.starts_with("@user_script");
    let hidden = error.detail().filter(|_| in_script).and_then(|said| said.rsplit_once(": -"));
    hidden.and_then(|(_, said)| said.split(' ').next()).or(Some(code))
}

/// What a script may not do is told to it without a code: the words of Redis up to 7.0, and of later ones and Valkey.
const DENIED_IN_SCRIPT: [&str; 2] = ["The user executing the script", "ACL failure in script"];

/// Whether these words deny a script a right.
pub(crate) fn is_denial_in_script(said: &str) -> bool {
    DENIED_IN_SCRIPT.iter().any(|text| said.contains(text))
}

/// What is told at the address of one server that has only a part of the keys.
pub(crate) fn part_of_a_cluster() -> StoreErrorKind {
    StoreErrorKind::Config(
        "this server belongs to a Cluster: write redis+cluster:// and the hosts of it".into(),
    )
}

fn redis_kind(error: &RedisError) -> StoreErrorKind {
    let said = || -> Arc<str> {
        let code = error.code().unwrap_or_default();
        format!("{code} {}", error.detail().unwrap_or_default()).trim().into()
    };
    match code(error) {
        Some("OOM") => return StoreErrorKind::Full,
        Some("MISCONF" | "NOREPLICAS" | "NOGOODSLAVE") => return StoreErrorKind::NotWriting(said()),
        Some("READONLY") => return StoreErrorKind::ReadOnly,
        Some("NOAUTH" | "WRONGPASS" | "NOPERM") => return StoreErrorKind::Denied,
        Some("LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" | "UNKILLABLE") => {
            return StoreErrorKind::Unreachable;
        }
        Some("MOVED" | "ASK") => {
            return part_of_a_cluster();
        }
        Some("CROSSSLOT") => {
            return StoreErrorKind::Config(
                "the keys of one lease are in different slots of the Cluster".into(),
            );
        }
        Some("WRONGTYPE") => {
            return StoreErrorKind::Corrupt {
                key: "a key of this lease".into(),
                problem: "it holds another kind of value".into(),
            };
        }
        Some(_) if is_denial_in_script(&said()) => return StoreErrorKind::Denied,
        _ => {}
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed => StoreErrorKind::Denied,
        ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported | ErrorKind::EmptySentinelList => {
            StoreErrorKind::Config(error.to_string().into())
        }
        ErrorKind::MasterNameNotFoundBySentinel | ErrorKind::ClusterConnectionNotFound => {
            StoreErrorKind::Unreachable
        }
        _ if is_no_redis(error)
            || error.is_io_error()
            || error.is_connection_dropped()
            || error.is_timeout() =>
        {
            StoreErrorKind::Unreachable
        }
        _ => StoreErrorKind::Other,
    }
}
