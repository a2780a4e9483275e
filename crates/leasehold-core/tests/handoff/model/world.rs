//! The state of the whole: a store, some replicas, the letters under way.

use super::{super::common, bounds::Bounds, store::Store};
use leasehold_core::{
    Fence, Moment, ReplicaId,
    handoff::{Ending, HandoffId, Incumbent, Successor},
};
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) now: u64,
    pub(super) store: Store,
    pub(super) replicas: Vec<Replica>,
    /// Letters that may still come. One that never comes is lost.
    pub(super) post: BTreeSet<Post>,
    /// A release that nobody waits for any more, and that may still reach the store: of which claim, in whose favour.
    pub(super) stray: Option<(usize, u64, Option<usize>)>,
    pub(super) mishaps: u8,
    /// What observers were told.
    pub(super) endings: Vec<Ending>,
    /// Which note was given to which term.
    pub(super) given: Vec<(u64, u64)>,
    /// A rule that an act broke.
    pub(super) broken: Option<&'static str>,
}

/// A letter as it travels: its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Post {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: String,
    pub(super) body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Replica {
    Down,
    Candidate {
        successor: Successor,
        warming: Option<HandoffId>,
    },
    Leader(Leader),
    /// Its term is over, and it has left.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Leader {
    pub(super) fence: u64,
    pub(super) incumbent: Incumbent,
    pub(super) worker: Worker,
    pub(super) renews: bool,
    /// A release that was sent: in whose favour.
    pub(super) releasing: Option<Option<usize>>,
    /// When the handoff under way was asked for.
    pub(super) asked_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Worker {
    Works,
    Quiesces,
    /// Told to go on.
    Resumes,
    /// Killed; perhaps it blocks its thread.
    Killed,
    Joined,
}

pub(super) fn id(replica: usize) -> ReplicaId {
    common::replica(["a", "b", "c"][replica])
}

pub(super) fn index(replica: &ReplicaId) -> usize {
    ["a", "b", "c"].iter().position(|name| *name == replica.as_str()).expect("one of ours")
}

pub(super) fn fence(number: u64) -> Fence {
    common::fence(number)
}

impl World {
    pub(super) fn moment(&self) -> Moment {
        common::at(self.now)
    }

    pub(super) fn leads(&self, replica: usize) -> Option<&Leader> {
        match &self.replicas[replica] {
            Replica::Leader(leader) => Some(leader),
            _ => None,
        }
    }
}

impl Replica {
    pub(super) fn candidate(replica: usize) -> Self {
        Self::Candidate { successor: Successor::new(id(replica), common::lease()), warming: None }
    }

    pub(super) fn leader(replica: usize, fence: u64, bounds: &Bounds) -> Self {
        let incumbent = Incumbent::new(id(replica), common::lease(), common::fence(fence), bounds.plan);
        Self::Leader(Leader {
            fence,
            incumbent,
            worker: Worker::Works,
            renews: true,
            releasing: None,
            asked_at: 0,
        })
    }
}
