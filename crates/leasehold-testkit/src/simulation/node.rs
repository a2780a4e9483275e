//! One replica: its process, its clock, and the machine that it drives.

use super::{
    clock::SkewedClock,
    store::{Answer, Request},
};
use leasehold_core::{
    AttemptId, Claim, Fence, LeaseRecord, Moment, ReplicaId,
    campaign::Campaign,
    handoff::{HandoffId, Incumbent, Letter, Successor},
    tenure::Tenure,
};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) replica: ReplicaId,
    pub(super) clock: SkewedClock,
    /// Counts its processes: what was meant for an earlier one is lost.
    pub(super) epoch: u64,
    pub(super) role: Role,
    /// Stopped by its operating system: what comes meanwhile waits.
    pub(super) paused: bool,
    pub(super) deferred: Vec<Note>,
    /// Cut off from the network until then.
    pub(super) cut_until: u64,
    /// The timers that count, one for each machine; older ones are passed over.
    pub(super) timer: u64,
    pub(super) handoff_timer: u64,
    pub(super) succession_timer: u64,
    pub(super) successor: Successor,
    /// The highest fence that this process has seen.
    pub(super) floor: Option<Fence>,
    pub(super) pending: BTreeMap<u64, Pending>,
}

#[derive(Debug)]
pub(super) enum Role {
    /// No process.
    Down,
    Campaigning(Box<Campaigning>),
    Leading(Box<Leading>),
    /// Its worker has ended, and its lease is on its way to an heir, or to anyone.
    Parting(Box<Parting>),
    /// Gave its lease up, and does not want it for a while.
    Resting,
}

#[derive(Debug)]
pub(super) struct Campaigning {
    pub(super) campaign: Campaign,
    pub(super) attempt: Option<AttemptId>,
}

#[derive(Debug)]
pub(super) struct Leading {
    pub(super) tenure: Tenure,
    pub(super) claim: Claim,
    pub(super) unit: Option<Unit>,
    /// Ends after the present unit of work.
    pub(super) leaving: bool,
    /// From the first ask to hand over on.
    pub(super) incumbent: Option<Incumbent>,
}

#[derive(Debug)]
pub(super) struct Parting {
    pub(super) incumbent: Incumbent,
    pub(super) claim: Claim,
    pub(super) note: bool,
    /// Whether the store was asked to release.
    pub(super) asked: bool,
}

/// One unit of work, and when it began by the world's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) number: u64,
    pub(super) from: u64,
}

/// What comes to a replica's process.
#[derive(Debug, Clone)]
pub(super) enum Note {
    Wake {
        timer: u64,
    },
    Answered {
        request: u64,
        answer: Answer,
    },
    /// The time that a request may take is over.
    Unanswered {
        request: u64,
    },
    Sighted(LeaseRecord),
    Ranked(usize),
    BeginWork {
        fence: Fence,
    },
    EndWork {
        unit: u64,
    },
    StepDown,
    HandOff,
    Rested,
    Letter {
        from: ReplicaId,
        letter: Letter,
    },
    Roster(Option<Vec<ReplicaId>>),
    /// The worker of a term that is handed over has ended.
    Joined,
    /// It goes on after all.
    Resumed,
    Warmed {
        handoff: HandoffId,
        warm: bool,
    },
    HandoffWake {
        timer: u64,
    },
    SuccessionWake {
        timer: u64,
    },
}

/// A request that waits for its answer.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    Bid {
        sent: Moment,
        request: Request,
    },
    Look,
    Renewal {
        sent: Moment,
        fence: Fence,
    },
    Release,
    /// The release of a term that is handed over.
    Parting,
    /// Does the heir have it?
    LookForHeir,
    /// What did this attempt leave behind?
    Undo {
        attempt: AttemptId,
        until: u64,
    },
}

impl Node {
    pub(super) const fn is_up(&self) -> bool {
        !matches!(self.role, Role::Down)
    }
}
