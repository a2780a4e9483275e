//! Where a handoff stands, on the incumbent's side.

use super::super::{Ask, HandoffId, Kept};
use crate::{Moment, ReplicaId};

/// One handoff.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Course {
    pub(super) id: HandoffId,
    pub(super) ask: Ask,
    /// When the time for choosing and quiescing is over.
    pub(super) until: Moment,
    pub(super) stage: Stage,
}

/// Each stage has an end, and what comes after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Candidates are asked, one after the other.
    Choosing { line: Line, until: Moment },
    /// The worker finishes its unit.
    Quiescing { heir: Option<ReplicaId> },
    /// The worker was told to go on.
    Resuming { why: Kept },
    /// The worker was killed.
    Joining { heir: Option<ReplicaId>, until: Moment },
    /// The release was sent. `retry_at` while no request is under way; `in_doubt` once one may have been carried out.
    Committing { heir: Option<ReplicaId>, until: Moment, retry_at: Option<Moment>, in_doubt: bool },
    /// Released; the heir is awaited. `looked` once the record was asked for, at the end of the window.
    Assuming { heir: ReplicaId, until: Moment, looked: bool },
}

/// Who is asked, and who is left to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Line {
    /// Who is asked now, and when it counts as silent.
    pub(super) asked: Option<(ReplicaId, Moment)>,
    /// Who comes after it, the next one last.
    pub(super) left: Vec<ReplicaId>,
}

impl Course {
    /// The replica that has a letter of this handoff and is awaited.
    pub(super) fn partner(&self) -> Option<&ReplicaId> {
        match &self.stage {
            Stage::Choosing { line, .. } => line.asked.as_ref().map(|(replica, _)| replica),
            Stage::Quiescing { heir } | Stage::Joining { heir, .. } | Stage::Committing { heir, .. } => {
                heir.as_ref()
            }
            Stage::Assuming { heir, .. } => Some(heir),
            Stage::Resuming { .. } => None,
        }
    }

    /// When something is due by the clock alone.
    pub(super) fn due(&self) -> Moment {
        match &self.stage {
            Stage::Choosing { line, until } => {
                line.asked.as_ref().map_or(*until, |(_, silent_at)| (*silent_at).min(*until))
            }
            Stage::Quiescing { .. } | Stage::Resuming { .. } => self.until,
            Stage::Joining { until, .. } | Stage::Assuming { until, .. } => *until,
            Stage::Committing { until, retry_at, .. } => retry_at.map_or(*until, |at| at.min(*until)),
        }
    }
}
