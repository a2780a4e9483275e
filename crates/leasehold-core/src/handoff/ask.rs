//! What is wanted of an incumbent.

use crate::{ReplicaId, TraceContext};
use std::{sync::Arc, time::Duration};

/// A wish that the incumbent hand over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ask {
    /// In whose favour.
    pub to: To,
    /// How long the incumbent may take to find a successor and to let its worker finish. What follows (the join, the
    /// release, the taking over) has the bounds of the [`Plan`](super::Plan); [`Plan::longest`](super::Plan::longest) is
    /// the sum. Zero: there is no time to ask anybody, nor to let the worker finish.
    pub within: Duration,
    /// What becomes of it if nobody takes over.
    pub otherwise: Otherwise,
    /// How long leadership then stays where it is put, though somebody else may be [preferred](super::Preference). For those
    /// who have put it there on purpose; zero otherwise.
    pub stay: Duration,
    /// Who wants it, for people to read.
    pub by: Arc<str>,
    /// Why, for people to read.
    pub reason: Arc<str>,
    /// The trace it belongs to. All letters of the handoff carry it.
    pub trace: TraceContext,
}

/// In whose favour.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum To {
    /// Whoever is ready, asked in the order of the roster: by priority, then by who has waited longest.
    Anyone,
    /// This replica, or nobody.
    Replica(ReplicaId),
}

/// What becomes of the lease if nobody takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Otherwise {
    /// The incumbent goes on leading, as long as its worker can.
    LeadOn,
    /// The incumbent leaves all the same (its process is about to end), and anyone may lead.
    Leave,
}
