//! How a handoff came out.

use crate::{Fence, ReplicaId};
use std::fmt;

/// How a handoff came out. Every handoff has exactly one ending, after [`Plan::longest`](super::Plan::longest) at most.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The successor leads.
    Done {
        /// Who.
        to: ReplicaId,
        /// Under which fence, as the successor or the record says.
        fence: Fence,
    },
    /// The incumbent still leads, under its old fence, and its worker works.
    Aborted(Kept),
    /// The incumbent leads no more, and the successor was not seen to take over: anyone may lead, as soon as the store
    /// says so.
    Released(Vacated),
}

impl Ending {
    /// The word for it: `done`, `aborted`, `vacated`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Done { .. } => "done",
            Self::Aborted(_) => "aborted",
            Self::Released(_) => "vacated",
        }
    }
}

/// For people to read: one sentence that says who leads now.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { to, fence } => write!(f, "{to} leads now, under fence {fence}"),
            Self::Aborted(why) => write!(f, "the incumbent still leads: {why}"),
            Self::Released(why) => write!(f, "the incumbent leads no more: {why}"),
        }
    }
}

/// Why the incumbent still leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Kept {
    /// The named replica is the incumbent itself.
    #[error("the replica named is the one that leads already")]
    ToItself,
    /// The named replica is not in the roster.
    #[error(
        "the replica named is no candidate for this lease: see who is, by its status, and name one of them"
    )]
    NotACandidate,
    /// Nobody else is in the roster.
    #[error("there is no other candidate for this lease: start one, then ask again")]
    NoCandidates,
    /// No candidate was ready in the time there was.
    #[error("no candidate was ready in time: give it more time, or look why none answers")]
    NobodyReady,
    /// There was no time to ask anybody.
    #[error("no time was given to ask any candidate: ask again with a longer one")]
    NoTime,
    /// The successor took back its word before the worker had ended, and the worker goes on.
    #[error("the successor withdrew after it had said that it was ready")]
    Withdrawn,
}

/// Why nobody is known to lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Vacated {
    /// Released to anyone: no candidate was ready, or the worker ended before one was.
    #[error("released to anyone, for no candidate was ready")]
    ToAnyone,
    /// Released in favour of the heir, who did not take it in its window. Anyone may lead now.
    #[error("released, but the heir did not take it in its time; anyone may lead now")]
    NotTaken,
    /// Released in favour of the heir, who withdrew. Anyone may lead when its window is over.
    #[error("released, but the heir withdrew; anyone may lead when its window is over")]
    Withdrawn,
    /// After the release, somebody else than the heir was seen to lead.
    #[error("released, and somebody else than the heir leads now")]
    TakenByAnother,
    /// The claim was lost in the middle: the store decides who leads, as after every loss.
    #[error("the lease was lost in the middle of the handoff; whoever the store grants it to leads")]
    Lost,
    /// The worker did not end, so nothing was released (I6). The lease expires within its ttl.
    #[error("the worker did not end, so the lease was not released; it expires within its ttl")]
    Overrun,
    /// The release stayed unsettled: the claim is over now, or expires within its ttl.
    #[error("the store did not say whether the lease was released; at the latest it expires within its ttl")]
    Unsettled,
}
