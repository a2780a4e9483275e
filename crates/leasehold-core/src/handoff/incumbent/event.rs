//! What happens to an incumbent, and what it wants done.

use super::super::{Ask, Ending, HandoffId, Letter, Step};
use crate::{Fence, Moment, ReplicaId};
use std::time::Duration;

/// What happens to an incumbent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The moment asked for by [`Action::WakeAt`] has come, or any other; waking too early or too often does no harm.
    Wake,
    /// Somebody wants it to hand over.
    Asked {
        /// A fresh id.
        id: HandoffId,
        /// What is wanted.
        ask: Ask,
    },
    /// The roster was read: who wants to lead, the first in rank first. `None` if it could not be read.
    Roster(Option<Vec<ReplicaId>>),
    /// A letter came. Anyone with access to the store can write any name as its sender.
    Letter {
        /// Who says to have sent it.
        from: ReplicaId,
        /// What it says.
        letter: Letter,
    },
    /// The worker, told to go on, does.
    Resumed,
    /// The worker and all that it started have provably ended. Nothing else may be reported as this (I6).
    Joined,
    /// The store's answer to [`Action::Release`].
    Parted(Answer),
    /// The record was seen: who holds the lease, and under which fence.
    Sighted(Option<(ReplicaId, Fence)>),
    /// The claim is lost, or not trusted any more.
    Lost,
}

/// The store's answer to the release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Released, as asked.
    Released,
    /// The claim was over already; who holds the lease now.
    NotHolder(Option<(ReplicaId, Fence)>),
    /// Certainly nothing was changed.
    Refused,
    /// Perhaps released, perhaps not (I7).
    Unknown,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read the roster; answer with [`Event::Roster`].
    ReadRoster,
    /// Send a letter.
    Send {
        /// To whom.
        to: ReplicaId,
        /// What.
        letter: Letter,
    },
    /// Ask the worker to finish its unit and to end with its note. Renewals go on.
    Quiesce {
        /// How long it may take. Asked again, the shorter time counts.
        within: Duration,
    },
    /// Tell the worker to go on after all. If it can, answer with [`Event::Resumed`]; if it ends, with [`Event::Joined`].
    Resume,
    /// End the worker now: its time is over.
    KillWorker,
    /// The worker has been joined: stop renewing, and wait for the end of what renews.
    EndRenewals,
    /// Release exactly our claim, with the worker's note, and answer with [`Event::Parted`]. Asked for only after
    /// [`Event::Joined`] (I6). Repeated while the answer is not known: a release of a claim that is over changes nothing.
    Release {
        /// Only this replica is to be granted, for this long.
        heir: Option<(ReplicaId, Duration)>,
    },
    /// Read the record; answer with [`Event::Sighted`].
    Look,
    /// Tell observers of the step.
    Tell(Step),
    /// Another ask came while a handoff is under way that does what is asked: its ending is the answer to both.
    Joins {
        /// The ask that came.
        id: HandoffId,
        /// The handoff under way.
        with: HandoffId,
    },
    /// Another ask came that cannot be met.
    Refuse {
        /// The ask that came.
        id: HandoffId,
        /// Why.
        why: Refusal,
    },
    /// Send [`Event::Wake`] at this moment. The latest one counts.
    WakeAt(Moment),
    /// The handoff has ended. Unless it was aborted, the term is over, and this is the last action.
    End {
        /// The handoff.
        id: HandoffId,
        /// How.
        ending: Ending,
    },
}

/// Why an ask was not taken up. The lease is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A handoff in favour of somebody else is under way.
    #[error("handoff {0} to somebody else is under way; ask again when it has ended")]
    Busy(
        /// Which.
        HandoffId,
    ),
    /// The term is over, or its worker has ended.
    #[error("this replica's term is over; ask whoever leads now")]
    Over,
}
