//! Until when a command may run, told to its guard for as long as the command is looked after.

use super::Child;
use leasehold::{BootClock, Clock, Moment};
use std::{convert::Infallible, future::Future, time::Duration};
use tokio::time::sleep;

/// Between two looks at the end of trust: an eighth of what is left, so that a renewal is told long before the guard
/// would act on the word before, also one that comes late. The bounds are the timer's step, and a second, as the timer
/// does not count the time that the host is suspended.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(1);

impl Child {
    /// Tells the guard the end of trust, on [`BootClock`], whenever it has moved. Never ends; to be polled beside
    /// whatever looks after the command. Should this process be paused, the guard acts on what it was told last.
    ///
    /// A guard that cannot be told makes nobody wait; it is told at the next look, if it can be.
    pub fn keep_trusted<F: Fn() -> Moment>(&self, until: F) -> impl Future<Output = Infallible> + use<F> {
        let guard = self.guard.clone();
        async move {
            let Some(guard) = guard else { return std::future::pending().await };
            let mut told = None;
            loop {
                let until = until();
                if told != Some(until) && guard.trust(until) {
                    told = Some(until);
                }
                sleep(pause(until.since(BootClock.now()))).await;
            }
        }
    }
}

fn pause(left: Duration) -> Duration {
    (left / 8).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As long as a renewal comes before the end of trust by more than the timer's step, there is a look in between.
    #[test]
    fn however_late_a_renewal_comes_there_is_a_look_before_the_end_of_trust() {
        let mut left = Duration::from_secs(3600);
        let mut looks = 0;
        while left > SHORTEST * 2 {
            left -= pause(left);
            looks += 1;
        }
        assert!(left >= SHORTEST && looks < 3700, "{left:?} left after {looks} looks");
    }
}
