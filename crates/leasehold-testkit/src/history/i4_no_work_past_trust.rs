//! **I4**: no worker runs past the end of its trust while its process is scheduled, and trust ends before the claim.

use super::{Event, Violation, What, terms::Pauses};
use std::collections::HashMap;

/// Checks every stretch of work against the trust of its term, and every trust against the claim it rests on.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let pauses = Pauses::of(history);
    let mut trusts: HashMap<(&str, &str, u64), &Event> = HashMap::new();
    let mut held: HashMap<(&str, u64), &Event> = HashMap::new();
    let mut violations = Vec::new();
    for event in history {
        let term = (&*event.lease, &*event.replica, event.fence);
        match event.what {
            What::Held { .. } => {
                held.insert((&event.lease, event.fence), event);
            }
            What::Trusted { until } => {
                trusts.insert(term, event);
                if let Some(claim) = held.get(&(&*event.lease, event.fence))
                    && let What::Held { until: expiry, .. } = claim.what
                    && until > expiry
                {
                    violations.push(Violation::new("I4", "trust outlives the claim", [*claim, event]));
                }
            }
            What::Worked { from } => match trusts.get(&term) {
                None => violations.push(Violation::new("I4", "work without trust", [event])),
                Some(trust) => {
                    let What::Trusted { until } = trust.what else { continue };
                    if event.at > until && !pauses.touch(&event.replica, from, event.at) {
                        violations.push(Violation::new("I4", "work past the end of trust", [*trust, event]));
                    }
                }
            },
            _ => {}
        }
    }
    violations
}
