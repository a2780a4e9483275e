//! **I9**: a note is delivered to the very next term, or not at all; never to two terms as if new.

use super::{Event, Step, Violation, What, terms::by_lease};
use std::collections::HashMap;

/// Checks what each term inherited against the terms before it.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for events in by_lease(history).into_values() {
        // The term before each, by the store.
        let mut before: HashMap<u64, u64> = HashMap::new();
        let mut last = None;
        let mut left: HashMap<u64, &Event> = HashMap::new();
        let mut given: HashMap<u64, &Event> = HashMap::new();
        for event in events {
            match event.what {
                What::Held { by: Step::Grant, .. } => {
                    if let Some(last) = last.replace(event.fence) {
                        before.insert(event.fence, last);
                    }
                }
                What::Releasing { note: true } => {
                    left.insert(event.fence, event);
                }
                What::Granted { inherited: Some(from), .. } => {
                    if !left.contains_key(&from) {
                        violations.push(Violation::new("I9", "a note that nobody left", [event]));
                    } else if before.get(&event.fence) != Some(&from) {
                        violations.push(Violation::new(
                            "I9",
                            "a note passed over a term",
                            [left[&from], event],
                        ));
                    }
                    if let Some(first) = given.insert(from, event) {
                        violations.push(Violation::new("I9", "a note given twice", [first, event]));
                    }
                }
                _ => {}
            }
        }
    }
    violations
}
