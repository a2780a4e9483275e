//! How long each step of a handoff may take.

use std::time::Duration;

/// The bounds of the steps. All are at least a millisecond and at most an hour: [`Plan::new`] holds them there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Plan {
    /// How long one candidate may stay silent or warm up before the next is asked. The last in line is given all the
    /// time that is left.
    pub answer: Duration,
    /// How long the worker may take to finish its unit. Half of an ask's `within` at most, so that there is time to choose.
    pub quiesce: Duration,
    /// How long a killed worker is waited for.
    pub join: Duration,
    /// How long the release is repeated while its outcome is unknown.
    pub commit: Duration,
    /// What lies between two such repetitions.
    pub retry: Duration,
    /// How long the lease is reserved for the heir.
    pub window: Duration,
}

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_hours(1);

impl Default for Plan {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(2),
            quiesce: Duration::from_secs(10),
            join: Duration::from_secs(5),
            commit: Duration::from_secs(2),
            retry: Duration::from_millis(100),
            window: Duration::from_secs(2),
        }
    }
}

impl Plan {
    /// The same plan with every bound held between a millisecond and an hour, so that no step can wait for ever, and none
    /// is over before it began.
    #[must_use]
    pub fn new(plan: Self) -> Self {
        let hold = |d: Duration| d.clamp(SHORTEST, LONGEST);
        Self {
            answer: hold(plan.answer),
            quiesce: hold(plan.quiesce),
            join: hold(plan.join),
            commit: hold(plan.commit),
            retry: hold(plan.retry),
            window: hold(plan.window),
        }
    }

    /// The longest that a handoff with this `within` can take until it has ended one way or another: the total into which
    /// all steps fit. `within` counts for an hour at most.
    #[must_use]
    pub fn longest(&self, within: Duration) -> Duration {
        within.min(LONGEST) + self.after_quiesce()
    }

    /// What can follow once the worker's time is over: join, commit, window, and one last look at the record.
    pub(super) fn after_quiesce(&self) -> Duration {
        self.join + self.commit + self.window + self.answer
    }

    /// The part of `within` that is kept for the worker.
    pub(super) fn reserve(&self, within: Duration) -> Duration {
        self.quiesce.min(within / 2)
    }
}
