//! A broken invariant, and the events that show it.

use super::Event;
use std::fmt;

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant.
    pub invariant: &'static str,
    /// What is wrong, in a sentence.
    pub problem: String,
    /// The events that show it, in order.
    pub events: Vec<Event>,
}

impl Violation {
    pub(super) fn new(
        invariant: &'static str,
        problem: impl Into<String>,
        events: impl IntoIterator<Item = impl std::borrow::Borrow<Event>>,
    ) -> Self {
        let events = events.into_iter().map(|event| event.borrow().clone()).collect();
        Self { invariant, problem: problem.into(), events }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.problem)?;
        for event in &self.events {
            let Event { at, lease, replica, fence, what } = event;
            write!(f, "\n  {:>14.6} s  {lease} #{fence} {replica}: {what:?}", *at as f64 / 1e9)?;
        }
        Ok(())
    }
}
