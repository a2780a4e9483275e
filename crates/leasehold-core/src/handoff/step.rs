//! What observers of a handoff are told.

use crate::ReplicaId;
use std::sync::Arc;

/// One step of a handoff, as events and spans show it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// A candidate was asked.
    Proposed(ReplicaId),
    /// It declined; its words are for people to read.
    Declined(ReplicaId, Arc<str>),
    /// It did not answer in its time.
    Silent(ReplicaId),
    /// It is ready.
    Ready(ReplicaId),
    /// The worker was asked to finish.
    Quiescing,
    /// The worker was told to go on: nobody takes over after all.
    Resuming,
    /// The worker has been joined.
    Joined,
    /// The lease was released, in this replica's favour if there is one.
    Released(Option<ReplicaId>),
}

impl Step {
    /// The word for it: `proposed`, `declined`, `silent`, `ready`, `quiescing`, `resuming`, `joined`, `released`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Proposed(_) => "proposed",
            Self::Declined(..) => "declined",
            Self::Silent(_) => "silent",
            Self::Ready(_) => "ready",
            Self::Quiescing => "quiescing",
            Self::Resuming => "resuming",
            Self::Joined => "joined",
            Self::Released(_) => "released",
        }
    }
}
