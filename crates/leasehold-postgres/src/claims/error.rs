//! What may become of a row claim.

use crate::wire::said;
use leasehold_core::Stale;
use std::time::Duration;

/// A row was not claimed, renewed, finished or given back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The claim expired, and another worker has claimed the row since: it is that one's to finish.
    #[error(transparent)]
    Stale(Stale),
    /// The row is not claimed: it was finished, or given back, under this very claim.
    #[error("the row is not claimed any more: this claim was finished or given back before")]
    NotClaimed,
    /// The row is gone.
    #[error("the row is gone; it was finished, or somebody deleted it")]
    NoRow,
    /// The row's fence is the highest there is, or none at all. It was claimed, and is free again after the ttl.
    #[error("a row of {table} has a fence that is none; look at it, then repair it")]
    FenceExhausted {
        /// The table.
        table: String,
    },
    /// The ttl is zero, below a millisecond, or absurd. Nothing was sent.
    #[error("a ttl of {0:?} is out of range: 1 ms to {max:?}", max = super::MAX_CLAIM_TTL)]
    Ttl(Duration),
    /// The server refused, or cannot be reached. After a lost connection nobody knows whether it was done.
    #[error("the claims of rows failed: {said}", said = said(.0))]
    Postgres(#[from] tokio_postgres::Error),
}
