//! When leadership moves by itself to a candidate of higher priority.
//!
//! A candidate's priority decides who leads next. With a [`Preference`] it also decides who leads now: the incumbent hands
//! over to a candidate of higher priority, but neither at once nor again and again. Each rule needs only what one process
//! sees, so that no replica has to remember what another one did.

use crate::{AttemptId, Candidacy, Moment, ReplicaId};
use std::{collections::HashMap, time::Duration};

/// The times that keep leadership from flapping, and from staying where it should not. Each counts for a week at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Preference {
    /// A candidate is preferred once it has been in line for this long without a break: one that comes and goes gets
    /// nothing. Default 30 s. Looked at twice in this time, so this is also what the roster is read for: between every
    /// second and every minute.
    pub settle: Duration,
    /// A term lasts at least this long before it is given up for somebody preferred, and a preferred candidate that did not
    /// take over is asked again no sooner. Default 5 min. A preferred replica that fails every minute leads for one minute
    /// in five.
    pub cool_down: Duration,
    /// How long leadership stays where somebody has put it on purpose, by a handoff that was asked for. Default 1 h.
    pub stay: Duration,
}

impl Default for Preference {
    fn default() -> Self {
        Self {
            settle: Duration::from_secs(30),
            cool_down: Duration::from_mins(5),
            stay: Duration::from_hours(1),
        }
    }
}

const LONGEST: Duration = Duration::from_hours(24 * 7);

impl Preference {
    /// From one look at the roster to the next.
    #[must_use]
    pub fn look_every(&self) -> Duration {
        (self.settle / 2).clamp(Duration::from_secs(1), Duration::from_mins(1))
    }
}

/// Who is preferred to the incumbent of one term, as far as it can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preferring {
    preference: Preference,
    priority: i32,
    // Before this nobody is preferred.
    from: Moment,
    // Who was in line at the last look, and since when without a break.
    line: HashMap<AttemptId, Moment>,
}

impl Preferring {
    /// The incumbent of a term that begins now, with its own priority.
    #[must_use]
    pub fn begin(preference: Preference, priority: i32, now: Moment) -> Self {
        let from = now.after(preference.cool_down.min(LONGEST));
        Self { preference, priority, from, line: HashMap::new() }
    }

    /// Leadership was put here on purpose.
    pub fn stay(&mut self, now: Moment, at_least: Duration) {
        self.from = self.from.max(now.after(at_least.min(LONGEST)));
    }

    /// Looks at the roster, in its order: to whom to hand over now, if to anybody. Whoever is named is named again after a
    /// cool-down only, whatever came of it.
    pub fn look(&mut self, now: Moment, roster: &[Candidacy]) -> Option<ReplicaId> {
        let line = std::mem::take(&mut self.line);
        self.line = roster.iter().map(|c| (c.id, line.get(&c.id).copied().unwrap_or(now))).collect();
        if now < self.from {
            return None;
        }
        let settled = |id| self.line.get(id).is_some_and(|since| now.since(*since) >= self.preference.settle);
        let preferred = roster.iter().find(|c| c.priority > self.priority && settled(&c.id))?;
        self.from = now.after(self.preference.cool_down.min(LONGEST));
        Some(preferred.replica.clone())
    }
}
