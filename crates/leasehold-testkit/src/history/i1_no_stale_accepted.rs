//! **I1**: a fenced resource never accepts a token lower than one it accepted before.

use super::{Event, Violation, What};
use std::collections::BTreeMap;

/// Checks each resource in its own order.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let mut writes: BTreeMap<(&str, &str), Vec<(u64, &Event)>> = BTreeMap::new();
    for event in history {
        if let What::Wrote { resource, seq, accepted: true } = &event.what {
            writes.entry((&event.lease, resource)).or_default().push((*seq, event));
        }
    }
    let mut violations = Vec::new();
    for ((_, resource), mut writes) in writes {
        writes.sort_by_key(|(seq, _)| *seq);
        let mut highest: Option<&Event> = None;
        for (_, write) in writes {
            match highest {
                Some(high) if write.fence < high.fence => {
                    let problem = format!("{resource} accepted {} after {}", write.fence, high.fence);
                    violations.push(Violation::new("I1", problem, [high, write]));
                }
                _ => highest = Some(write),
            }
        }
    }
    violations
}
