//! **I7**: an unknown outcome is never treated as success, nor keeps a claim alive that nobody knows of.

use super::{Event, Step, Violation, What};
use std::collections::HashSet;

/// Checks that nobody works, or renews, under a fence that it was never told, and that the store begins no second term
/// of an attempt: a request that comes that late is nobody's wish any more.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let mut known: HashSet<(&str, &str, u64)> = HashSet::new();
    let mut violations = Vec::new();
    for event in history {
        let term = (&*event.lease, &*event.replica, event.fence);
        let problem = match event.what {
            What::Granted { .. } => {
                known.insert(term);
                continue;
            }
            What::Worked { .. } | What::Wrote { .. } | What::Trusted { .. } => "work without a grant",
            What::Held { by: Step::Revival, .. } => {
                violations.push(Violation::new("I7", "an attempt that was over is granted again", [event]));
                continue;
            }
            What::Held { by: Step::Renewal, .. } => "a claim is renewed that nobody was told of",
            _ => continue,
        };
        if !known.contains(&term) {
            violations.push(Violation::new("I7", problem, [event]));
        }
    }
    violations
}
