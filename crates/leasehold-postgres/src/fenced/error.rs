//! Why a write behind a fence was not made.

use crate::wire::said;
use leasehold_core::{Fence, Stale};
use tokio_postgres::error::{DbError, SqlState};

/// Why a write behind a fence was not made, or is not known to have been.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FencedError {
    /// A higher fence was accepted before: the lease of this writer is over. The transaction can only be rolled back.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The fence is further above the mark than it may be. The transaction can only be rolled back.
    #[error("{said}; nothing was written: check where the fence is from", said = said(.0))]
    TooFar(#[source] tokio_postgres::Error),
    /// A table that takes writes only under a fence got none. The transaction can only be rolled back.
    #[error("{said}; nothing was written: present the fence first", said = said(.0))]
    NoFence(#[source] tokio_postgres::Error),
    /// Another transaction with a fence was in the way, and the server ended this one: a serialization failure, or a
    /// deadlock. Nothing was written: make the whole transaction again, and it will be accepted or told that it is stale.
    #[error("another fenced transaction was in the way, and nothing was written ({said}): make it again", said = said(.0))]
    Contended(#[source] tokio_postgres::Error),
    /// The row that carries the fence is not there. Nothing was written.
    #[error("there is no row with this key in {table}; nothing was written")]
    NoRow {
        /// The table.
        table: String,
    },
    /// What is kept as the fence of a row is none. It was left as it is.
    #[error(
        "a row of {table} has the fence {found}, which is none; nothing was written: look at it, then repair it"
    )]
    Damaged {
        /// The table.
        table: String,
        /// What is there.
        found: i64,
    },
    /// The schema of the marks is not in this database, or not for this role.
    #[error(
        "the fence marks cannot be used ({said}); nothing was written: install the schema in the database of the data \
         (`leasehold doctor --migrate`), and grant its use to this role",
        said = said(.0)
    )]
    NoMarks(#[source] tokio_postgres::Error),
    /// The server refused, or cannot be reached. A transaction whose connection is lost before its COMMIT was sent is
    /// rolled back.
    #[error("the fenced write failed: {said}", said = said(.0))]
    Postgres(#[source] tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for FencedError {
    /// Tells what the functions and triggers of the marks say from all else, also when the error comes from a user's own
    /// statement on a table with a trigger.
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else { return Self::Postgres(error) };
        match db.code().code() {
            "LH001" => match stale(db) {
                Some(stale) => Self::Stale(stale),
                None => Self::Postgres(error),
            },
            "LH002" | "LH004" => Self::NoFence(error),
            "LH003" => Self::TooFar(error),
            _ if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED]
                .contains(db.code()) =>
            {
                Self::Contended(error)
            }
            _ if [
                SqlState::INVALID_SCHEMA_NAME,
                SqlState::UNDEFINED_FUNCTION,
                SqlState::INSUFFICIENT_PRIVILEGE,
            ]
            .contains(db.code()) =>
            {
                Self::NoMarks(error)
            }
            _ => Self::Postgres(error),
        }
    }
}

fn stale(db: &DbError) -> Option<Stale> {
    let (presented, highest) = db.detail()?.split_once(' ')?;
    let fence = |text: &str| Fence::new(text.parse().ok()?).ok();
    Some(Stale { presented: fence(presented)?, highest: fence(highest)? })
}
