//! What observers of a handoff are told.

use super::{Ending, To};
use crate::ReplicaId;
use std::sync::Arc;

/// One step of a handoff, as events and spans show it. Those of the incumbent come first, then those of the successor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// It was asked for.
    Asked(To),
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
    /// It has ended.
    Ended(Ending),

    /// The successor was asked by this replica, and warms up.
    WarmingUp(ReplicaId),
    /// The successor is warm, and told this replica so.
    WarmedUp(ReplicaId),
    /// The successor told this replica that it will not lead; why.
    Declining(ReplicaId, Arc<str>),
    /// Nothing comes of it: the successor is a candidate like others.
    StoodDown(ReplicaId),
    /// The successor's worker was started, and this replica was told so.
    Assumed(ReplicaId),
}

impl Step {
    /// The word for it: `asked`, `proposed`, `declined`, `silent`, `ready`, `quiescing`, `resuming`, `joined`, `released`;
    /// at the end `done`, `aborted` or `vacated`; of a successor `warming-up`, `warmed-up`, `declining`, `stood-down`,
    /// `assumed`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Asked(_) => "asked",
            Self::Proposed(_) => "proposed",
            Self::Declined(..) => "declined",
            Self::Silent(_) => "silent",
            Self::Ready(_) => "ready",
            Self::Quiescing => "quiescing",
            Self::Resuming => "resuming",
            Self::Joined => "joined",
            Self::Released(_) => "released",
            Self::Ended(ending) => ending.as_str(),
            Self::WarmingUp(_) => "warming-up",
            Self::WarmedUp(_) => "warmed-up",
            Self::Declining(..) => "declining",
            Self::StoodDown(_) => "stood-down",
            Self::Assumed(_) => "assumed",
        }
    }

    /// The replica at the other side, where the step has one: whoever is to lead, or, of a successor's step, the incumbent.
    #[must_use]
    pub const fn partner(&self) -> Option<&ReplicaId> {
        match self {
            Self::Asked(To::Replica(replica))
            | Self::Proposed(replica)
            | Self::Declined(replica, _)
            | Self::Silent(replica)
            | Self::Ready(replica)
            | Self::Released(Some(replica))
            | Self::Ended(Ending::Done { to: replica, .. })
            | Self::WarmingUp(replica)
            | Self::WarmedUp(replica)
            | Self::Declining(replica, _)
            | Self::StoodDown(replica)
            | Self::Assumed(replica) => Some(replica),
            Self::Asked(To::Anyone)
            | Self::Quiescing
            | Self::Resuming
            | Self::Joined
            | Self::Released(None)
            | Self::Ended(_) => None,
        }
    }

    /// What else there is to say, for people to read: why somebody declined, or how it ended.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Declined(_, why) | Self::Declining(_, why) => Some(why.to_string()),
            Self::Ended(Ending::Aborted(why)) => Some(why.to_string()),
            Self::Ended(Ending::Released(why)) => Some(why.to_string()),
            _ => None,
        }
    }
}
