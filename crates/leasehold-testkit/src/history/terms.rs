//! What several checkers need of a history: claims by the store's clock, and pauses.

use super::{Event, What};
use std::collections::BTreeMap;

/// A claim as the store kept it.
pub(super) struct Claimed<'a> {
    pub(super) fence: u64,
    /// Its first event.
    pub(super) grant: &'a Event,
    /// Its last one.
    pub(super) last: &'a Event,
    /// When it ended by the store's clock.
    pub(super) end: u64,
}

/// Events by lease, each in the history's order.
pub(super) fn by_lease(history: &[Event]) -> BTreeMap<&str, Vec<&Event>> {
    let mut leases: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for event in history {
        leases.entry(&event.lease).or_default().push(event);
    }
    leases
}

/// The claims of one lease, in the order of their grants.
pub(super) fn claims<'a>(events: &[&'a Event]) -> Vec<Claimed<'a>> {
    let mut claims: Vec<Claimed<'a>> = Vec::new();
    // Fences increase as a rule, so the claim meant is almost always the last; a broken store is what we look for.
    for event in events {
        let open = claims.iter_mut().rev().find(|claim| claim.fence == event.fence && claim.end > event.at);
        match (&event.what, open) {
            (What::Held { until, .. }, Some(claim)) => {
                claim.end = *until;
                claim.last = event;
            }
            (What::Held { until, .. }, None) => {
                claims.push(Claimed { fence: event.fence, grant: event, last: event, end: *until });
            }
            (What::Vacated, Some(claim)) => {
                claim.end = event.at;
                claim.last = event;
            }
            _ => {}
        }
    }
    claims
}

/// When each replica was stopped by its operating system.
pub(super) struct Pauses<'a> {
    of: BTreeMap<&'a str, Vec<(u64, u64)>>,
}

impl<'a> Pauses<'a> {
    pub(super) fn of(history: &'a [Event]) -> Self {
        let mut of: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
        for event in history {
            let spans = of.entry(&event.replica).or_default();
            match event.what {
                What::Paused => spans.push((event.at, u64::MAX)),
                What::Resumed => {
                    if let Some(span) = spans.last_mut() {
                        span.1 = event.at;
                    }
                }
                _ => {}
            }
        }
        Self { of }
    }

    /// Whether the replica was stopped at some time from `from` to `to`.
    pub(super) fn touch(&self, replica: &str, from: u64, to: u64) -> bool {
        let spans = self.of.get(replica).map_or(&[][..], Vec::as_slice);
        spans.iter().any(|(began, ended)| *began <= to && from <= *ended)
    }
}
