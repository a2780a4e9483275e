//! How a term went.

use crate::event::WorkerOutcome;
use leasehold_core::{Fence, LostCause, Release, handoff::Ending};
use std::time::Duration;

/// How a term went.
#[derive(Debug)]
pub(crate) struct TermReport {
    pub(crate) fence: Fence,
    pub(crate) worker: WorkerOutcome,
    pub(crate) cause: LostCause,
    pub(crate) release: Option<Release>,
    pub(crate) lasted: Duration,
    /// How it was handed over, if that was asked for.
    pub(crate) handed: Option<Ending>,
}

impl TermReport {
    /// Whether the store knows that the term is over: nobody has to wait for its expiry.
    pub(crate) const fn confirmed(&self) -> bool {
        Self::is_confirmed(&self.cause, self.release.as_ref())
    }

    pub(super) const fn is_confirmed(cause: &LostCause, release: Option<&Release>) -> bool {
        matches!(cause, LostCause::NotHolder(_))
            || matches!(release, Some(Release::Released | Release::NotHolder(_)))
    }
}
