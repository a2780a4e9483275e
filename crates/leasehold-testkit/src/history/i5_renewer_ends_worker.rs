//! **I5**: the end of the renewer, by any cause, ends the worker.

use super::{Event, Violation, What, terms::Pauses};
use std::{collections::HashMap, time::Duration};

/// How long after its renewer a worker may be seen at work: the time in which an operating system surely schedules the
/// thread that ends it.
pub const SLACK: Duration = Duration::from_millis(50);

/// Checks that no work of a term ends later than [`SLACK`] after its renewer, except over a pause.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let pauses = Pauses::of(history);
    let slack = SLACK.as_nanos() as u64;
    let mut ended: HashMap<(&str, &str, u64), &Event> = HashMap::new();
    let mut violations = Vec::new();
    for event in history {
        let term = (&*event.lease, &*event.replica, event.fence);
        match event.what {
            What::RenewerEnded => {
                ended.entry(term).or_insert(event);
            }
            What::Worked { .. } => {
                if let Some(renewer) = ended.get(&term)
                    && event.at > renewer.at.saturating_add(slack)
                    && !pauses.touch(&event.replica, renewer.at, event.at)
                {
                    violations.push(Violation::new("I5", "work without a renewer", [*renewer, event]));
                }
            }
            _ => {}
        }
    }
    violations
}
