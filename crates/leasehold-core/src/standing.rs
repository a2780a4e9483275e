//! How a term stands, and why it was lost.

use crate::{Fence, LeaseName, Moment, NotHolder, Stale, StoreError, handoff::Step};
use std::sync::Arc;

/// How a term stands. An ordered stream of these is what a holder's observers see.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Held, and trusted until then unless renewed.
    Held {
        /// The end of trust.
        until: Moment,
    },
    /// The last renewal did not succeed. Still held and trusted; what cannot be finished by then should not begin.
    Jeopardy {
        /// The end of trust.
        until: Moment,
        /// What went wrong.
        cause: JeopardyCause,
    },
    /// Held, and being handed over: this step was just made. Tells nothing of renewals, which go on until the worker has
    /// ended. What follows the release (who took over) is not the term's any more: events tell it.
    HandingOver {
        /// The end of trust.
        until: Moment,
        /// The step.
        step: Step,
    },
    /// Over. The last standing of every term.
    Lost {
        /// Why.
        cause: LostCause,
    },
}

/// Why a renewal did not succeed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum JeopardyCause {
    /// The store failed, or did not answer in the time that a renewal may take.
    Store(StoreError),
    /// The worker gave no pulse, so its lease is not renewed on its behalf.
    NoPulse,
}

impl JeopardyCause {
    /// The word for it: `store` or `no-pulse`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Store(_) => "store",
            Self::NoPulse => "no-pulse",
        }
    }
}

impl std::fmt::Display for JeopardyCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::NoPulse => f.write_str("the worker gave no pulse"),
        }
    }
}

/// Why a term is over.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LostCause {
    /// No renewal succeeded before the end of trust. The store may grant the lease to another any moment now.
    #[error("no renewal succeeded before the end of trust")]
    Expired,
    /// The store said that the claim is over: it expired there, was forced, or was lost by the store.
    #[error("the store says that the claim is over{}", holder(.0))]
    NotHolder(NotHolder),
    /// A fenced resource has accepted a higher fence.
    #[error("{0}")]
    Stale(Stale),
    /// The worker gave no pulse until the end of trust.
    #[error("the worker gave no pulse until the end of trust")]
    NoPulse,
    /// The renewer ended without a word: a panic, a kill, or the end of its runtime.
    #[error("the renewer ended")]
    RenewerEnded,
    /// Renewals failed, and the worker ended on its last call, before the end of trust.
    #[error("renewals failed, and the worker ended on its last call, before the end of trust")]
    LastCall,
    /// The worker did not end when its time was over; it blocks its thread. Its lease is renewed no more, and not
    /// released either: it expires.
    #[error("the worker did not end when its time was over; its lease is left to expire")]
    Overrun,
    /// The session that held a database's lock is over, or could not be proved in time. The text says which.
    #[error("its session is over: {0}")]
    SessionEnded(Arc<str>),
    /// This process gave it up.
    #[error("given up by this process")]
    Released,
}

fn holder(answer: &NotHolder) -> String {
    match &answer.holder {
        Some((replica, fence)) => format!("; replica {replica} holds it under fence {fence}"),
        None => String::new(),
    }
}

impl LostCause {
    /// The word for it, for labels: `expired`, `not-holder`, `stale`, `no-pulse`, `renewer-ended`,
    /// `last-call`, `overrun`, `session-ended`, `released`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotHolder(_) => "not-holder",
            Self::Stale(_) => "stale",
            Self::NoPulse => "no-pulse",
            Self::RenewerEnded => "renewer-ended",
            Self::LastCall => "last-call",
            Self::Overrun => "overrun",
            Self::SessionEnded(_) => "session-ended",
            Self::Released => "released",
        }
    }

    /// Whether the term ended as its holder wanted.
    #[must_use]
    pub const fn is_voluntary(&self) -> bool {
        matches!(self, Self::Released)
    }
}

/// The lease is no longer held, as far as this process may assume.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "lease {name} under fence {fence} is over: {cause}; stop the work, and begin nothing under this fence"
)]
pub struct Lost {
    /// The lease.
    pub name: LeaseName,
    /// The fence of the term that is over.
    pub fence: Fence,
    /// Why.
    pub cause: LostCause,
}
