//! Two at work at once.

use super::{
    Event, Violation, What,
    terms::{Pauses, by_lease},
};

/// Two stretches of work under two fences of one lease at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Overlap<'a> {
    /// The work under the lower fence.
    pub old: &'a Event,
    /// The work under the higher one.
    pub new: &'a Event,
}

/// All overlaps, each old stretch with the first new one.
#[must_use]
pub fn overlaps(history: &[Event]) -> Vec<Overlap<'_>> {
    let mut found = Vec::new();
    for events in by_lease(history).into_values() {
        let span = |event: &Event| match event.what {
            What::Worked { from } => Some((from, event.at)),
            _ => None,
        };
        let mut work: Vec<_> = events.into_iter().filter_map(|event| Some((span(event)?, event))).collect();
        work.sort_by_key(|((from, _), _)| *from);
        // Those that have not ended when the next begins. Few at any time, unless everything is broken.
        let mut open: Vec<((u64, u64), &Event)> = Vec::new();
        for (span, event) in work {
            open.retain(|((_, to), _)| *to > span.0);
            for (_, other) in &open {
                match other.fence.cmp(&event.fence) {
                    std::cmp::Ordering::Less => found.push(Overlap { old: other, new: event }),
                    std::cmp::Ordering::Greater => found.push(Overlap { old: event, new: other }),
                    std::cmp::Ordering::Equal => {}
                }
            }
            open.push((span, event));
        }
    }
    found
}

/// An overlap is a violation unless a pause of the old holder's process forced it; then only the fence protects the
/// resource, which [`super::i1_no_stale_accepted`] checks.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let pauses = Pauses::of(history);
    let mut violations = Vec::new();
    for Overlap { old, new } in overlaps(history) {
        let What::Worked { from } = old.what else { continue };
        if !pauses.touch(&old.replica, from, old.at) {
            violations.push(Violation::new("overlap", "two at work at once", [old, new]));
        }
    }
    violations
}
