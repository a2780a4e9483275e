//! What incumbent and successor say to each other.

use super::HandoffId;
use crate::{Fence, LeaseName, TraceContext};
use std::{sync::Arc, time::Duration};

/// One thing said in one handoff. [`wire`](super::wire) turns it into an [`Envelope`](crate::Envelope) and back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Letter {
    /// The handoff.
    pub handoff: HandoffId,
    /// The lease it is about.
    pub lease: LeaseName,
    /// The fence of the term that is to end: a letter about another term is stale.
    pub fence: Fence,
    /// How long its writer still goes on with this handoff, from the sending. Never a time of day: the reader counts from
    /// the receipt, and is late by the letter's delay, which costs it some waiting and nothing else.
    pub remaining: Duration,
    /// The trace of the handoff.
    pub trace: TraceContext,
    /// What is said.
    pub message: Message,
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Message {
    /// Incumbent: will you take over? Warm up, then answer.
    Propose {
        /// How long leadership is to stay there; see [`Ask::stay`](super::Ask::stay).
        stay: Duration,
    },
    /// Successor: I will, at once when you let go.
    Ready,
    /// Successor: I will not, or not any more.
    Decline {
        /// Why, for people to read. Cut to [`MAX_WHY_BYTES`](super::wire::MAX_WHY_BYTES) when it is sent.
        why: Arc<str>,
    },
    /// Incumbent: I have released it in your favour. No grant: acquire it.
    Yours,
    /// Successor: I have acquired it.
    Assumed {
        /// The fence of the new term.
        fence: Fence,
    },
    /// Incumbent: I go on leading, or have asked somebody else.
    Abort,
}
