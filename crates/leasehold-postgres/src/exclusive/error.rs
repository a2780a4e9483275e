//! What may keep work from being done under a lock.

use crate::{key::Key, wire::said};
use std::{convert::Infallible, time::Duration};
use tokio_postgres::Transaction;

/// Work was not done under a lock, or is not known to have been.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError<E> {
    /// Somebody else held the lock all the time. The work was not started.
    #[error("{key} is locked by another session{}; the work was not started: try again later, or wait longer", for_how_long(*waited))]
    Busy {
        /// The lock.
        key: Key,
        /// For how long it was waited for; zero if it was only tried.
        waited: Duration,
    },
    /// The work failed. All it had written was rolled back.
    #[error("{0}")]
    Work(E),
    /// The work returned `Ok`, but one of its statements had failed, and its error was overlooked. All was rolled back.
    #[error(
        "a statement of the work had failed, and its error was overlooked; everything was rolled back: let the work return it, or \
         put the statement behind a savepoint"
    )]
    Aborted,
    /// The server refused to commit: a deferred constraint, a serialization failure. All was rolled back.
    #[error("the work was done, and its commit refused ({said}); everything was rolled back", said = said(.0))]
    NotCommitted(#[source] tokio_postgres::Error),
    /// The connection was lost while the commit was on its way. Nobody knows whether the work was committed: look, before it is
    /// done again.
    #[error("the connection was lost during the commit ({said}); the work may have been committed or not: look before you do it again", said = said(.0))]
    Unknown(#[source] tokio_postgres::Error),
    /// The transaction reads from a snapshot that is older than the lock. Nothing was locked.
    #[error(
        "{key} was not locked: a transaction that is {level} would not see what earlier holders have committed; begin it READ COMMITTED"
    )]
    Snapshot {
        /// The lock.
        key: Key,
        /// Its isolation level, as the server calls it.
        level: String,
    },
    /// The server or the connection failed before the work was started. Nothing was written.
    #[error("the lock could not be taken ({said}); the work was not started", said = said(.0))]
    Postgres(#[source] tokio_postgres::Error),
}

fn for_how_long(waited: Duration) -> String {
    if waited.is_zero() { String::new() } else { format!(" and was not free within {waited:?}") }
}

impl LockError<Infallible> {
    pub(super) fn into_any<E>(self) -> LockError<E> {
        match self {
            Self::Work(never) => match never {},
            Self::Busy { key, waited } => LockError::Busy { key, waited },
            Self::Aborted => LockError::Aborted,
            Self::NotCommitted(error) => LockError::NotCommitted(error),
            Self::Unknown(error) => LockError::Unknown(error),
            Self::Snapshot { key, level } => LockError::Snapshot { key, level },
            Self::Postgres(error) => LockError::Postgres(error),
        }
    }
}

/// Commits, unless a statement has failed.
pub(super) async fn commit<E>(tx: Transaction<'_>) -> Result<(), LockError<E>> {
    // To a COMMIT after a failed statement the server answers ROLLBACK, which is no error. The SELECT is one then.
    let Err(error) = tx.batch_execute("SELECT; COMMIT").await else {
        // Its drop would send a ROLLBACK, for which the server would warn in its log that there is no transaction. There is
        // nothing to leak: it borrows the client, and owns a name only inside another transaction.
        std::mem::forget(tx);
        return Ok(());
    };
    Err(match error.code() {
        Some(code) if *code == tokio_postgres::error::SqlState::IN_FAILED_SQL_TRANSACTION => {
            LockError::Aborted
        }
        // What ends the session may come before or after the commit.
        Some(code) if code.code().starts_with("57P") || code.code().starts_with("08") => {
            LockError::Unknown(error)
        }
        Some(_) => LockError::NotCommitted(error),
        None => LockError::Unknown(error),
    })
}
