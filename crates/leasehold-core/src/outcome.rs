//! The answers of a store. Every verb that writes has four: yes, no, certainly not done, and unknown.

use crate::{Claim, Fence, Note, Predecessor, ReplicaId, StoreError};
use std::time::Duration;

/// The answer to a bid.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Acquire {
    /// The bid became a claim.
    Granted(Granted),
    /// Somebody else holds it, or it is reserved for an heir.
    Held(Held),
    /// Certainly nothing was changed.
    Refused(StoreError),
    /// Perhaps the claim exists, perhaps not. Settled by the attempt id, never assumed (invariant I7).
    Unknown(StoreError),
}

/// A fresh claim, and what the store tells with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    /// The claim.
    pub claim: Claim,
    /// What the store says is left, right after the grant. More than the ttl asked for means that the store's
    /// clock jumped.
    pub remaining: Duration,
    /// How the term before ended.
    pub predecessor: Predecessor,
    /// What the term before left.
    pub inherited: Option<Note>,
}

/// Who holds it instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The holder, or the heir for whom it is reserved.
    pub by: ReplicaId,
    /// The fence of the holder, or of the term that named the heir.
    pub fence: Fence,
    /// What the store says is left until anyone may be granted, unless it is renewed.
    pub remaining: Duration,
    /// Whether it is reserved for an heir who has not taken it yet.
    pub reserved: bool,
}

/// The answer to one renewal.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Renew {
    /// The claim lives on.
    Renewed {
        /// What the store says is left, right after the renewal.
        remaining: Duration,
    },
    /// The claim is over.
    NotHolder(NotHolder),
    /// Certainly nothing was changed.
    Refused(StoreError),
    /// Perhaps renewed, perhaps not. Not a success.
    Unknown(StoreError),
}

/// The answer to a release.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Release {
    /// The claim is over, as asked.
    Released,
    /// The claim was over already. Nothing was changed.
    NotHolder(NotHolder),
    /// Certainly nothing was changed.
    Refused(StoreError),
    /// Perhaps released, perhaps not; at the latest the claim expires.
    Unknown(StoreError),
}

/// The answer to a forced release.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Force {
    /// The claim that was ended.
    Forced {
        /// Its fence.
        fence: Fence,
        /// Its holder.
        replica: ReplicaId,
    },
    /// Nobody held it. Nothing was changed.
    Vacant,
    /// Certainly nothing was changed.
    Refused(StoreError),
    /// Perhaps done, perhaps not: look at the record.
    Unknown(StoreError),
}

/// A claim that is no longer the one in the store: it expired, was released, was forced, or the store lost it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotHolder {
    /// Who holds it now, and under which fence.
    pub holder: Option<(ReplicaId, Fence)>,
    /// The highest fence that the store knows for the name.
    pub highest: Option<Fence>,
}

/// The answer of a fenced resource.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Admit {
    /// At least as high as every fence accepted before; it is now the highest.
    Accepted,
    /// Lower than one that was accepted before (invariant I1).
    Stale(Stale),
    /// Certainly nothing was changed.
    Refused(StoreError),
    /// Perhaps the mark was raised; it was never lowered. Ask again.
    Unknown(StoreError),
}

/// A fence below one that the resource accepted before. Its holder's term is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "stale fence {presented}: the resource has accepted {highest}; this holder's lease is over, stop its work"
)]
pub struct Stale {
    /// What was presented.
    pub presented: Fence,
    /// The highest that was accepted.
    pub highest: Fence,
}
