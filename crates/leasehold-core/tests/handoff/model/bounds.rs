//! What one exploration contains.

use leasehold_core::handoff::{Otherwise, Plan, To};
use std::time::Duration;

/// The size of the space.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    pub(super) title: &'static str,
    pub(super) replicas: usize,
    pub(super) to: To,
    pub(super) otherwise: Otherwise,
    pub(super) within: Duration,
    pub(super) plan: Plan,
    /// How long a claim lives without renewal, in ticks.
    pub(super) ttl: u64,
    /// How many terms there may be.
    pub(super) terms: u64,
    /// How many things go wrong in one story, besides letters that are lost or late: crashes, losses of the lease, troubled
    /// releases, doubled letters, failed warm-ups, withdrawals, workers that end by themselves, a second ask.
    pub(super) mishaps: u8,
    /// The last tick.
    pub(super) ticks: u64,
    pub(super) mutation: Mutation,
}

/// What is taken away, to see that it is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutation {
    None,
    NoJoinGate,
    NoHeirCheck,
    YoursIsAGrant,
    UnknownIsReleased,
    NoteStays,
}

impl Bounds {
    pub(super) fn two() -> Self {
        let each = Duration::from_millis(1);
        let plan = Plan { answer: each, quiesce: each, join: each, commit: each, retry: each, window: each };
        Self {
            title: "two replicas",
            replicas: 2,
            to: To::ANYONE,
            otherwise: Otherwise::LeadOn,
            within: each * 2,
            plan,
            ttl: 1,
            terms: 2,
            mishaps: 2,
            ticks: 8,
            mutation: Mutation::None,
        }
    }

    pub(super) fn three() -> Self {
        let title = "three replicas";
        Self { title, replicas: 3, mishaps: 1, within: Duration::from_millis(3), ticks: 9, ..Self::two() }
    }
}
