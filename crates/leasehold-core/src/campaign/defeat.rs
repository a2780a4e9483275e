//! Why a campaign ended without the lease.

use crate::{Held, StoreError};
use std::time::Duration;

/// Why a campaign ended without the lease.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Defeat {
    /// Somebody else has it, and only one attempt was asked for.
    #[error("replica {} holds it under fence {} for another {:?}", .0.by, .0.fence, .0.remaining)]
    Busy(Held),
    /// The time to wait is over.
    #[error("it was not won in the time to wait; {}", .last.as_ref().map_or_else(|| "no answer came".to_owned(), ToString::to_string))]
    TimedOut {
        /// The last thing that was known.
        last: Option<Obstacle>,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(StoreError),
}

/// What stood in the way last.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// Somebody held it.
    #[error("replica {} holds it under fence {}", .0.by, .0.fence)]
    Held(Held),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The store granted it, but so late that nothing of the grant was left to trust. It was given back.
    #[error("the store's yes took {took:?}, longer than the lease is worth; it was given back")]
    Late {
        /// From the sending of the bid to its answer.
        took: Duration,
    },
}
