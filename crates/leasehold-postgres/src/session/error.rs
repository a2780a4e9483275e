//! Why a session does not hold a lock.

use crate::{key::Key, wire::said};
use std::{sync::Arc, time::Duration};

/// A lock was not taken. This process does not hold it; a connection that was opened for it has been closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotLocked {
    /// Somebody else held it all the time.
    #[error("{key} is locked by another session{}", if waited.is_zero() { String::new() } else { format!(", and was not free within {waited:?}") })]
    Busy {
        /// The lock.
        key: Key,
        /// For how long it was waited for; zero if it was only tried.
        waited: Duration,
    },
    /// The statements of one connection reach different sessions of the server.
    #[error(
        "{key} was not locked: a pooler in transaction or statement mode stands before the server, where a session lock would stay \
         behind on a session that others use. Give the address of the server itself, or of a pool in session mode; or use a \
         lease, or an `exclusive` transaction, which work behind every pooler"
    )]
    Pooled {
        /// The lock.
        key: Key,
    },
    /// The server is a standby: its locks keep out nobody on the primary.
    #[error(
        "{key} was not locked: the server is a read-only standby, whose locks nobody on the primary sees; give the address of the primary"
    )]
    Standby {
        /// The lock.
        key: Key,
    },
    /// The server did not answer.
    #[error("{key} was not locked: the server did not answer within {within:?}")]
    TimedOut {
        /// The lock.
        key: Key,
        /// How long it had.
        within: Duration,
    },
    /// The silence lies outside of what systems can keep.
    #[error(
        "a silence of {0:?} is out of range: {min:?} to {max:?}",
        min = super::MIN_SILENCE,
        max = super::MAX_SILENCE
    )]
    Silence(Duration),
    /// The address cannot be connected to as it is: a certificate that cannot be read, for one. Nothing was sent.
    #[error("{0}")]
    Config(#[source] leasehold_core::StoreErrorKind),
    /// The server counts its transactions beyond every fence, which none does in earnest.
    #[error("the server's transaction number is no fence: {0}")]
    Fence(#[source] leasehold_core::FenceRangeError),
    /// The server refused, or cannot be reached.
    #[error("{key} was not locked: {said}", said = said(source))]
    Postgres {
        /// The lock.
        key: Key,
        /// What the server, or the system, said.
        source: tokio_postgres::Error,
    },
}

/// A lock was held, and is not any more, or is not to be trusted any more. Others may hold it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionLost {
    /// The connection has ended, and with it the session and its lock.
    #[error("{key} is lost: its connection has ended ({why})")]
    Ended {
        /// The lock.
        key: Key,
        /// What the connection said.
        why: Arc<str>,
    },
    /// No proof came in time. The server frees the lock when it gives this host up.
    #[error("{key} is not to be trusted any more: the server has not confirmed it within {silence:?}")]
    Silent {
        /// The lock.
        key: Key,
        /// How long the server waits for a silent host.
        silence: Duration,
    },
    /// The session lives, and does not hold the lock: somebody unlocked it there.
    #[error("{key} is lost: its session does not hold it any more; something has unlocked it there")]
    Unlocked {
        /// The lock.
        key: Key,
    },
    /// A statement reached another session: a pooler came between.
    #[error("{key} is lost: a pooler in transaction mode answers in the place of its session")]
    Pooled {
        /// The lock.
        key: Key,
    },
    /// The server did not confirm.
    #[error("{key} is not to be trusted any more: the server did not confirm it ({said})", said = said(source))]
    Failed {
        /// The lock.
        key: Key,
        /// What the server, or the connection, said.
        source: tokio_postgres::Error,
    },
}
