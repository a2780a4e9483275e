//! What a campaign wants.

use crate::{Fence, Moment, ReplicaId, Timing};
use std::time::Duration;

/// How long to want it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// One attempt: somebody else's holding is an answer.
    Try,
    /// Until this moment.
    Until(Moment),
    /// For ever.
    Forever,
}

/// What is wanted, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// The replica that wants it.
    pub me: ReplicaId,
    /// The durations of the lease.
    pub timing: Timing,
    /// How long to want it.
    pub patience: Patience,
    /// One step of the order in which waiters follow each other into a vacancy: what a waiter usually needs to hear
    /// that somebody took it.
    pub stride: Duration,
    /// The highest fence of the name that this process has ever seen.
    pub floor: Option<Fence>,
    /// Repeats the jitter.
    pub seed: u64,
}
