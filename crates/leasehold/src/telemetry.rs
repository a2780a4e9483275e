//! The only file that names a span or a log line. Names are those of `docs/telemetry.md`.
//!
//! No span lives as long as a term: a killed holder would never end it. Each span is one store call or one loss.

use crate::event::{Event, Happening};
use leasehold_core::{
    Claim, Envelope, LeaseName, Release, ReplicaId, Retry, Scope, StoreError, TraceContext,
    handoff::{HandoffId, Step},
};
use std::{fmt, sync::Arc};
use tracing::{Span, debug, debug_span, info, info_span, warn};

/// Carries traces between `tracing` and the W3C `traceparent` strings that travel in letters and records.
///
/// The library depends on no telemetry crate: whoever sets up an exporter gives the node one of these, and without
/// one every [`TraceContext`] is empty.
pub trait Propagator: Send + Sync + fmt::Debug + 'static {
    /// The context of a span, to be sent along.
    fn inject(&self, span: &Span) -> TraceContext;
    /// Makes `parent`, which came from a message of this process or another, the parent of `span`.
    fn adopt(&self, span: &Span, parent: &TraceContext);
    /// Links `span` to another trace, such as that of the term before.
    fn link(&self, span: &Span, other: &TraceContext);
}

/// The propagator of a node, or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traces(Option<Arc<dyn Propagator>>);

impl Traces {
    pub(crate) const fn new(propagator: Option<Arc<dyn Propagator>>) -> Self {
        Self(propagator)
    }

    /// The context of the span in which the caller runs.
    pub(crate) fn here(&self) -> TraceContext {
        self.of(&Span::current())
    }

    pub(crate) fn of(&self, span: &Span) -> TraceContext {
        self.0.as_ref().map_or(TraceContext::NONE, |p| p.inject(span))
    }

    fn child(&self, span: Span, parent: &TraceContext) -> Span {
        if let (Some(p), Some(_)) = (&self.0, parent.traceparent()) {
            p.adopt(&span, parent);
        }
        span
    }

    pub(crate) fn link(&self, span: &Span, other: &TraceContext) {
        if let (Some(p), Some(_)) = (&self.0, other.traceparent()) {
            p.link(span, other);
        }
    }

    pub(crate) fn acquire(&self, name: &LeaseName, replica: &ReplicaId, parent: &TraceContext) -> Span {
        let span = info_span!(
            "lease.acquire", lease = %name, %replica,
            outcome = tracing::field::Empty, fence = tracing::field::Empty, predecessor = tracing::field::Empty,
        );
        self.child(span, parent)
    }

    pub(crate) fn renew(&self, batch: usize) -> Span {
        debug_span!("lease.renew", batch)
    }

    pub(crate) fn release(&self, claim: &Claim, parent: &TraceContext) -> Span {
        let span = info_span!(
            "lease.release", lease = %claim.name, replica = %claim.replica, fence = claim.fence.get(),
            outcome = tracing::field::Empty,
        );
        self.child(span, parent)
    }

    /// A handoff as a whole, at the incumbent: bounded in time, unlike a term.
    pub(crate) fn handoff(&self, claim: &Claim, id: HandoffId, reason: &str, parent: &TraceContext) -> Span {
        let span = info_span!(
            "handoff", lease = %claim.name, replica = %claim.replica, fence = claim.fence.get(), handoff = %id, reason,
            outcome = tracing::field::Empty, to = tracing::field::Empty, gap_us = tracing::field::Empty,
        );
        self.child(span, parent)
    }

    /// What begins with a step of the incumbent, if anything does; it ends with the next.
    pub(crate) fn handoff_step(handoff: &Span, step: &Step) -> Option<Span> {
        match step {
            Step::Proposed(to) => {
                Some(info_span!(parent: handoff, "handoff.propose", %to, outcome = tracing::field::Empty))
            }
            Step::Quiescing => Some(info_span!(parent: handoff, "handoff.quiesce")),
            Step::Joined => Some(info_span!(parent: handoff, "handoff.commit", heir = tracing::field::Empty)),
            _ => None,
        }
    }

    /// The successor warms up.
    pub(crate) fn warm_up(&self, lease: &LeaseName, id: HandoffId, parent: &TraceContext) -> Span {
        let span = info_span!("handoff.warm_up", %lease, handoff = %id, outcome = tracing::field::Empty);
        self.child(span, parent)
    }

    /// The successor takes over: from the news that it may until its worker was started.
    pub(crate) fn assume(&self, lease: &LeaseName, parent: &TraceContext) -> Span {
        let span = info_span!("handoff.assume", %lease, fence = tracing::field::Empty);
        self.child(span, parent)
    }

    /// The end of a term that its holder did not want: a short span of its own, linked to the term's acquire.
    pub(crate) fn lost(&self, claim: &Claim, cause: &str, acquired_in: &TraceContext) {
        let span = info_span!(
            "lease.lost", lease = %claim.name, replica = %claim.replica, fence = claim.fence.get(), cause,
        );
        self.link(&span, acquired_in);
        let _entered = span.enter();
    }
}

/// Writes an event to the log, with the lease, the fence and the replica in fields.
pub(crate) fn log(event: &Event) {
    let (lease, replica) = (&event.lease, &event.replica);
    let fence = event.fence.map(leasehold_core::Fence::get);
    match &event.what {
        Happening::Campaigning => info!(%lease, %replica, "campaigning"),
        Happening::Acquired { predecessor, waited, trusted } => {
            info!(%lease, %replica, fence, predecessor = %predecessor.fate(), ?waited, ?trusted, "acquired");
        }
        Happening::Jeopardy { cause, remaining } => {
            warn!(%lease, %replica, fence, %cause, ?remaining, "not renewed; still held");
        }
        Happening::Renewed { remaining } => debug!(%lease, %replica, fence, ?remaining, "renewed"),
        Happening::ClockAnomaly { asked, remaining } => {
            warn!(%lease, %replica, fence, ?asked, ?remaining, "the store's clock does not add up");
        }
        Happening::Lost { cause } => warn!(%lease, %replica, fence, %cause, "lost"),
        Happening::Quiescing { by, reason } => {
            info!(%lease, %replica, fence, by = &**by, reason = &**reason, "quiescing");
        }
        Happening::WorkerEnded { outcome } => {
            info!(%lease, %replica, fence, outcome = outcome.as_str(), ?outcome, "worker ended");
        }
        Happening::Overrun { waited } => {
            warn!(%lease, %replica, fence, ?waited, "the worker does not end: it blocks its thread; its lease is not released");
        }
        Happening::Released { heir } => {
            info!(%lease, %replica, fence, heir = heir.as_ref().map(AsRef::<str>::as_ref), "released");
        }
        Happening::Handoff { id, step, elapsed, gap } => {
            let (to, why) = (step.partner().map(tracing::field::display), step.why());
            info!(%lease, %replica, fence, handoff = %id, step = step.as_str(), to, why, ?elapsed, ?gap, "handoff");
        }
        Happening::StaleRefused { resource, stale } => {
            warn!(%lease, %replica, resource = &**resource, presented = %stale.presented, highest = %stale.highest, "stale fence refused");
        }
    }
}

pub(crate) fn observer_panicked(event: &Event) {
    warn!(lease = %event.lease, event = event.what.name(), "an observer panicked; the event was logged and goes on to the next");
}

pub(crate) fn release_failed(claim: &Claim, error: &StoreError) {
    let (lease, fence) = (&claim.name, claim.fence.get());
    if error.retry() == Retry::Never {
        warn!(%lease, fence, %error, "the release was not confirmed, and repeating it is no use; at the latest the lease expires");
    } else {
        warn!(%lease, fence, %error, "the release was not confirmed; it is repeated in the background until the lease has expired");
    }
}

pub(crate) fn release_open(claim: &Claim, error: &StoreError) {
    debug!(lease = %claim.name, fence = claim.fence.get(), %error, "the release was repeated, and is still not confirmed");
}

pub(crate) fn released_late(claim: &Claim, answer: &Release, repeats: u32) {
    let (lease, fence) = (&claim.name, claim.fence.get());
    if *answer == Release::Released {
        info!(%lease, fence, repeats, "the release is confirmed, late");
    } else {
        info!(%lease, fence, repeats, "the lease that was to be released is over");
    }
}

pub(crate) fn release_expired(claim: &Claim, repeats: u32) {
    warn!(lease = %claim.name, fence = claim.fence.get(), repeats, "the release was never confirmed; the lease has expired");
}

pub(crate) fn note_dropped(claim: &Claim, error: &dyn fmt::Display) {
    warn!(lease = %claim.name, fence = claim.fence.get(), %error, "the worker's note was dropped");
}

pub(crate) fn notice_panicked(claim: &Claim) {
    warn!(lease = %claim.name, fence = claim.fence.get(), "`Worker::notice` panicked; the worker was not told");
}

pub(crate) fn watch_troubled(scope: &Scope, error: &dyn fmt::Display) {
    match scope {
        Scope::Names(names) => {
            let lease = names.first().map(tracing::field::display);
            warn!(lease, %error, "the watch is broken and being restored; until then a release is noticed late");
        }
        // Renewals go on, and tell whether the store works.
        Scope::All | Scope::Live(_) => {
            debug!(%error, "the watch of the leases that are held is broken and being restored; until then renewals alone tell of a forced release");
        }
    }
}

pub(crate) fn roster_troubled(name: &LeaseName, error: &dyn fmt::Display) {
    debug!(lease = %name, %error, "the roster could not be read or written; candidates may follow each other less evenly");
}

pub(crate) fn inbox_troubled(error: &dyn fmt::Display) {
    debug!(%error, "the inbox could not be opened; letters of other replicas are not read for now");
}

pub(crate) fn letter_lost(letter: &Envelope, to: &ReplicaId, error: &dyn fmt::Display) {
    warn!(lease = %letter.lease, kind = &*letter.kind, %to, %error, "a letter was not sent; a handoff will take longer, or not come about");
}

pub(crate) fn letter_unsent(lease: &LeaseName) {
    debug!(%lease, "a letter was not sent, for the node has ended");
}

pub(crate) fn letter_unreadable(letter: &Envelope, why: &dyn fmt::Display) {
    warn!(lease = %letter.lease, kind = &*letter.kind, from = %letter.from, %why, "a letter was ignored");
}

pub(crate) fn letter_ignored(kind: &str, from: &ReplicaId) {
    debug!(kind, %from, "a letter of an unknown kind was ignored");
}
