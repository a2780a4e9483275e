//! **I6**: no early release before the worker has been joined.

use super::{Event, Violation, What};
use std::collections::HashMap;

/// Checks that a release comes after the end of the worker, and no work after the release.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let mut working: HashMap<(&str, &str, u64), &Event> = HashMap::new();
    let mut released: HashMap<(&str, &str, u64), &Event> = HashMap::new();
    let mut violations = Vec::new();
    for event in history {
        let term = (&*event.lease, &*event.replica, event.fence);
        match event.what {
            What::WorkerBegan => {
                working.insert(term, event);
            }
            What::WorkerEnded => {
                working.remove(&term);
            }
            What::Releasing { .. } => {
                released.insert(term, event);
                if let Some(worker) = working.get(&term) {
                    violations.push(Violation::new("I6", "released over a running worker", [*worker, event]));
                }
            }
            What::Worked { .. } => {
                if let Some(release) = released.get(&term) {
                    violations.push(Violation::new("I6", "work after the release", [*release, event]));
                }
            }
            _ => {}
        }
    }
    violations
}
