//! How often the witnesses of others are asked for.
//!
//! All processes that watch a lease would ask for the same. The more of them there are, the more seldom each asks, at times
//! of its own, so that together they ask about [`FEW`] times as often as one alone; whoever notices a crash tells it to all.

use leasehold_core::{AttemptId, backoff::Backoff};
use std::time::Duration;
use tokio::time::Instant;

/// So many processes ask as often as one alone would.
const FEW: u32 = 4;
/// So many times longer a pause becomes at the most: those who watched with us may all be gone.
const LONGEST: u32 = 100;

/// When to ask next.
#[derive(Debug)]
pub(super) struct Poll {
    every: Duration,
    crowd: u32,
    due: Instant,
    dice: Backoff,
}

impl Poll {
    /// One alone asks each `every`.
    pub(super) fn new(every: Duration) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *AttemptId::random().as_bytes();
        let dice = Backoff::new(every, every, u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
        Self { every, crowd: 1, due: now(), dice }
    }

    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// It was asked.
    pub(super) fn asked(&mut self) {
        self.due = now() + self.pause();
    }

    /// So many processes watch, with us.
    pub(super) fn watched_by(&mut self, crowd: u64) {
        let crowd = u32::try_from(crowd).unwrap_or(u32::MAX).max(1);
        if std::mem::replace(&mut self.crowd, crowd) > crowd {
            // Others who would have asked are gone.
            self.due = self.due.min(now() + self.pause());
        }
    }

    /// As long as `every` for one alone; else of that mean, and drawn anew each time.
    fn pause(&mut self) -> Duration {
        if self.crowd == 1 {
            return self.every;
        }
        let mean = (self.every * self.crowd.min(FEW * LONGEST) / FEW).max(self.every);
        mean / 2 + self.dice.jitter(mean)
    }
}

#[allow(clippy::disallowed_methods, reason = "when to ask, not how long a lease lives")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(10);

    /// How often all of a crowd together ask while one alone asks once.
    fn load(crowd: u32) -> f64 {
        let mut poll = Poll::new(EVERY);
        poll.watched_by(crowd.into());
        let mean = (0..2_000).map(|_| poll.pause()).sum::<Duration>() / 2_000;
        f64::from(crowd) * EVERY.as_secs_f64() / mean.as_secs_f64()
    }

    #[test]
    fn a_crowd_asks_about_as_often_as_a_few() {
        assert_eq!(Poll::new(EVERY).pause(), EVERY);
        for crowd in [4, 7, 40, 100, 400] {
            assert!((3.5..4.5).contains(&load(crowd)), "{crowd}: {}", load(crowd));
        }
        assert!(load(1) <= 1.0 && load(3) < 3.5);
        assert!(load(4_000) < 45.0, "a process waits at most 1.5 s");
    }

    #[test]
    fn whoever_is_left_alone_does_not_wait_for_the_others() {
        let mut poll = Poll::new(EVERY);
        poll.watched_by(4_000);
        poll.asked();
        assert!(poll.due() > now() + EVERY * 20);
        poll.watched_by(1);
        assert!(poll.due() <= now() + EVERY);
    }
}
