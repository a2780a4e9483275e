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
    /// How many things go wrong in one story, besides letters that are lost or late.
    pub(super) mishaps: u8,
    /// What may go wrong.
    pub(super) kinds: &'static [Kind],
    /// The last tick.
    pub(super) ticks: u64,
    pub(super) mutation: Mutation,
}

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A replica dies, and may come again.
    Crash,
    /// A lease is lost; a worker ends by itself.
    Loss,
    /// A release is refused, or its answer is lost, or it arrives late.
    Release,
    /// A letter comes twice.
    Letter,
    /// A warm-up fails, or a candidate withdraws.
    Successor,
    /// It is asked again, to leave.
    Ask,
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
    pub(super) fn two(title: &'static str, mishaps: u8, kinds: &'static [Kind]) -> Self {
        let each = Duration::from_millis(1);
        let plan = Plan { answer: each, quiesce: each, join: each, commit: each, retry: each, window: each };
        Self {
            title,
            replicas: 2,
            to: To::Anyone,
            otherwise: Otherwise::LeadOn,
            within: each * 2,
            plan,
            ttl: 1,
            terms: 2,
            mishaps,
            kinds,
            ticks: 8,
            mutation: Mutation::None,
        }
    }

    pub(super) fn three() -> Self {
        Self { replicas: 3, ..Self::two("three", 0, &[]) }
    }

    /// Time for three releases, if two are in trouble.
    pub(super) fn slow_to_commit(mut self) -> Self {
        self.plan.commit = Duration::from_millis(3);
        self.ticks += 2;
        self
    }
}
