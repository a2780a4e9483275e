//! When to try again what failed: for stores, which connect again by themselves.

use super::Backoff;
use crate::AttemptId;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The first and the longest pause between two attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// When to connect again to what was lost.
///
/// Pauses become longer and longer, from 50 to 500 ms, and differ from those of others that lost the same server. Only where it
/// is urgent, the first try after a loss is at once.
#[derive(Debug)]
pub struct Retry {
    backoff: Backoff,
    /// Whether what was connected last has lasted.
    is_calm: bool,
    due: Option<Instant>,
}

impl Retry {
    /// Nothing was lost yet.
    #[must_use]
    pub fn new() -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *AttemptId::random().as_bytes();
        // Of the system's randomness: process ids are the same in every container.
        let seed = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        Self { backoff: Backoff::new(PAUSES.0, PAUSES.1, seed), is_calm: true, due: None }
    }

    /// What was there is gone.
    pub fn lost(&mut self, is_urgent: bool) {
        if std::mem::take(&mut self.is_calm) && is_urgent {
            self.due = Some(now());
        } else if self.due.is_none() {
            self.failed();
        }
    }

    /// An attempt failed.
    pub fn failed(&mut self) {
        self.is_calm = false;
        self.due = Some(now() + self.backoff.next_delay());
    }

    /// An attempt succeeded. The next one is not at once until this has lasted: a server that ends each connection as
    /// soon as it is made would otherwise be asked without a pause.
    pub const fn done(&mut self) {
        self.due = None;
    }

    /// What was connected has lasted.
    pub const fn lasted(&mut self) {
        self.is_calm = true;
        self.backoff.reset();
    }

    /// When to try again, if anything is to be tried.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}

/// Waits until it is due; for ever if nothing is.
pub async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[allow(clippy::disallowed_methods, reason = "when to try again, not how long a lease lives")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_urgent_try_is_at_once_and_the_next_only_after_calm() {
        let mut retry = Retry::new();
        assert!(retry.due().is_none());
        let mut is_at_once = |after: fn(&mut Retry), is_urgent| {
            retry.done();
            after(&mut retry);
            let at = now();
            retry.lost(is_urgent);
            retry.due().unwrap() - at < PAUSES.0 / 2
        };
        assert!(is_at_once(|_| {}, true));
        assert!(!is_at_once(|_| {}, true), "it had not lasted");
        assert!(is_at_once(Retry::lasted, true));
        assert!(!is_at_once(Retry::lasted, false), "nobody is in a hurry");
    }

    #[test]
    fn a_loss_that_is_told_again_does_not_put_off_what_is_due() {
        let mut retry = Retry::new();
        retry.failed();
        let due = retry.due();
        retry.lost(true);
        assert_eq!(retry.due(), due);
    }

    #[test]
    fn pauses_grow_and_differ_from_those_of_others() {
        let pauses = || {
            let mut retry = Retry::new();
            let pause = |_| {
                let at = now();
                retry.failed();
                retry.due().unwrap() - at
            };
            (0..10).map(pause).collect::<Vec<_>>()
        };
        let (ours, theirs) = (pauses(), pauses());
        assert!(ours[9] >= PAUSES.1 / 2 && ours[0] < ours[9]);
        let differ = |(a, b): (&Duration, &Duration)| a.abs_diff(*b) > Duration::from_millis(1);
        assert!(ours.iter().zip(&theirs).any(differ));
    }
}
