//! Handing a lease over on purpose: what comes of it, and who is told.

use leasehold_core::{
    LeaseName,
    handoff::{Ending, HandoffId, Step, incumbent::Refusal},
};
use std::{fmt, time::Duration};

/// How a handoff came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// Which; its events carry the same id.
    pub id: HandoffId,
    /// Who leads now, as far as that is known.
    pub ending: Ending,
    /// From the moment the incumbent was asked to the end.
    pub took: Duration,
    /// How long nobody led, if somebody else leads now: from the join of the old worker to the word that the new one was
    /// started, that word's way included.
    pub gap: Option<Duration>,
}

/// A handoff was not begun, or nobody knows how it ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandOffError {
    /// This replica does not lead now. Nothing was changed.
    #[error("{name} is not led by this replica now: ask whoever leads")]
    NotLeading {
        /// The lease.
        name: LeaseName,
    },
    /// The incumbent could not take it up. Nothing was changed.
    #[error("{name}: {why}")]
    Refused {
        /// The lease.
        name: LeaseName,
        /// Why.
        why: Refusal,
    },
    /// The election ended before the handoff had. The record says who holds the lease.
    #[error("the election for {name} ended before the handoff had: look who leads now")]
    Stopped {
        /// The lease.
        name: LeaseName,
    },
}

/// What somebody who asked is told.
pub(crate) enum Told<'a> {
    Step { step: &'a Step, elapsed: Duration },
    Refused(Refusal),
    Ended(&'a Handover),
}

/// Somebody who asked for a handoff, and waits for news of it.
pub(crate) struct Asker {
    pub(crate) id: HandoffId,
    tell: Box<dyn FnMut(Told<'_>) + Send>,
}

impl Asker {
    pub(crate) fn new(id: HandoffId, tell: impl FnMut(Told<'_>) + Send + 'static) -> Self {
        Self { id, tell: Box::new(tell) }
    }

    /// Somebody who does not wait.
    pub(crate) fn nobody() -> Self {
        Self::new(HandoffId::random(), |_| {})
    }

    pub(crate) fn tell(&mut self, told: Told<'_>) {
        (self.tell)(told);
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asker({})", self.id)
    }
}
