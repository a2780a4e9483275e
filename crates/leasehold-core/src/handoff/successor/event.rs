//! What happens to a successor, and what it wants done.

use super::super::{HandoffId, Letter};
use crate::{Fence, LeaseRecord, Moment, ReplicaId, TraceContext};
use std::{sync::Arc, time::Duration};

/// What happens to a successor.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The moment asked for by [`Action::WakeAt`] has come, or any other; waking too early or too often does no harm.
    Wake,
    /// A letter came. Anyone with access to the store can write any name as its sender.
    Letter {
        /// Who says to have sent it.
        from: ReplicaId,
        /// What it says.
        letter: Letter,
    },
    /// The warm-up for this handoff is done.
    WarmedUp(HandoffId),
    /// The warm-up for this handoff failed.
    Unfit {
        /// The handoff.
        handoff: HandoffId,
        /// Why, for people to read.
        why: Arc<str>,
    },
    /// It would lead if asked. So it is from the beginning.
    Willing,
    /// It would not lead if asked, or is about to leave.
    Unwilling {
        /// Why, for people to read.
        why: Arc<str>,
    },
    /// A state of the lease was seen.
    Sighted(LeaseRecord),
    /// The campaign won: this replica leads under this fence.
    Granted(Fence),
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Warm up the worker; answer with [`Event::WarmedUp`] or [`Event::Unfit`].
    WarmUp {
        /// The handoff.
        handoff: HandoffId,
        /// After this time nobody waits for it any more.
        within: Duration,
        /// The trace it belongs to.
        trace: TraceContext,
    },
    /// Nothing comes of this handoff: what was warmed up for it may go.
    StandDown {
        /// The handoff.
        handoff: HandoffId,
    },
    /// The campaign should bid at once: the lease is probably ours. One for each `Yours`, and one for a reservation seen in the record.
    Bid,
    /// Send a letter.
    Send {
        /// To whom.
        to: ReplicaId,
        /// What.
        letter: Letter,
    },
    /// Leadership was put here on purpose: for this long, no candidate is [preferred](super::super::Preference).
    Stay {
        /// From now on.
        at_least: Duration,
    },
    /// Send [`Event::Wake`] at this moment. The latest one counts.
    WakeAt(Moment),
}
