//! What one client got, and whether it should have got it.

use super::event::{Event, Stamped};
use crate::clock::Stamp;
use leasehold::Fence;
use serde::Serialize;
use std::time::Duration;

/// Everything that came, in the order in which it came.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    got: Vec<(Stamp, Stamped)>,
    /// What was wrong, in the order in which it was noticed.
    pub breaches: Vec<Breach>,
    /// How many connections it took.
    pub connections: u32,
    last: u64,
    highest: Option<Fence>,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "breach", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Breach {
    /// An event came again, or late.
    #[error("event {seq} came again")]
    Repeated {
        /// The event.
        seq: u64,
    },
    /// Events were left out.
    #[error("events {from} to {to} did not come")]
    Missing {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// An event of a lower fence came after one of a higher fence.
    #[error("event {seq} came under fence {fence} after fence {highest}")]
    FenceWentBack {
        /// The event.
        seq: u64,
        /// Its fence.
        #[serde(with = "super::event::number")]
        fence: Fence,
        /// The highest before.
        #[serde(with = "super::event::number")]
        highest: Fence,
    },
    /// An event did not say what the feed had said.
    #[error("event {seq} says something else than the feed")]
    Altered {
        /// The event.
        seq: u64,
    },
}

impl Ledger {
    /// Enters what came.
    pub fn enter(&mut self, at: Stamp, event: Stamped) {
        let last = self.last;
        if event.seq <= last {
            self.breaches.push(Breach::Repeated { seq: event.seq });
        } else if event.seq > last + 1 {
            self.breaches.push(Breach::Missing { from: last + 1, to: event.seq - 1 });
        }
        if let Some(highest) = self.highest.filter(|highest| *highest > event.fence) {
            self.breaches.push(Breach::FenceWentBack { seq: event.seq, fence: event.fence, highest });
        }
        self.last = last.max(event.seq);
        self.highest = self.highest.max(Some(event.fence));
        self.got.push((at, event));
    }

    /// Compares with what the feed emitted, from event 1 on.
    pub fn compare(&mut self, emitted: &[Event]) {
        let said = |seq: u64| usize::try_from(seq).ok().and_then(|n| emitted.get(n.checked_sub(1)?));
        let altered =
            self.got.iter().filter(|(_, e)| said(e.seq).is_none_or(|said| said.payload != e.payload));
        self.breaches.extend(altered.map(|(_, e)| Breach::Altered { seq: e.seq }).collect::<Vec<_>>());
        let (last, all) = (self.last, emitted.len() as u64);
        if last < all {
            self.breaches.push(Breach::Missing { from: last + 1, to: all });
        }
    }

    /// The highest number that came; 0 before the first.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// How many events came, repetitions included.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.got.len()
    }

    /// The fences that came, in order, each once.
    #[must_use]
    pub fn fences(&self) -> Vec<u64> {
        let mut fences: Vec<u64> = self.got.iter().map(|(_, e)| e.fence.get()).collect();
        fences.dedup();
        fences
    }

    /// The longest wait for an event that began before `to` and ended after `from`.
    #[must_use]
    pub fn longest_wait(&self, from: Stamp, to: Stamp) -> Duration {
        let waits = self.got.windows(2).map(|pair| (pair[0].0, pair[1].0));
        waits.filter(|(a, b)| *a < to && *b > from).map(|(a, b)| b - a).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(fence: u64, seq: u64) -> Stamped {
        Stamped { fence: Fence::new(fence).unwrap(), seq, payload: format!("event {seq}") }
    }

    fn ledger(events: impl IntoIterator<Item = (u64, u64)>) -> Ledger {
        let mut ledger = Ledger::default();
        for (index, (fence, seq)) in events.into_iter().enumerate() {
            ledger.enter(Stamp(1_000 * index as u64), event(fence, seq));
        }
        ledger
    }

    #[test]
    fn once_and_in_order_under_rising_fences_is_no_breach() {
        let mut ledger = ledger([(1, 1), (1, 2), (4, 3)]);
        let emitted: Vec<Event> = (1..=3).map(|seq| Event { seq, payload: format!("event {seq}") }).collect();
        ledger.compare(&emitted);
        assert_eq!(ledger.breaches, []);
        assert_eq!((ledger.last(), ledger.count(), ledger.fences()), (3, 3, vec![1, 4]));
    }

    #[test]
    fn a_repetition_a_gap_and_a_fence_that_goes_back_are_each_noticed() {
        let f = |n| Fence::new(n).unwrap();
        assert_eq!(ledger([(1, 1), (1, 1)]).breaches, [Breach::Repeated { seq: 1 }]);
        assert_eq!(ledger([(1, 3)]).breaches, [Breach::Missing { from: 1, to: 2 }]);
        assert_eq!(
            ledger([(2, 1), (1, 2)]).breaches,
            [Breach::FenceWentBack { seq: 2, fence: f(1), highest: f(2) }]
        );
        assert_eq!(ledger([(1, 1), (1, 3), (1, 2)]).breaches.len(), 2, "late is not in order");
    }

    #[test]
    fn what_the_feed_did_not_say_and_what_never_came_are_noticed_at_the_end() {
        let mut ledger = ledger([(1, 1), (1, 2)]);
        let emitted = [(1, "event 1"), (2, "other"), (3, "event 3")]
            .map(|(seq, payload)| Event { seq, payload: payload.to_owned() });
        ledger.compare(&emitted);
        assert_eq!(ledger.breaches, [Breach::Altered { seq: 2 }, Breach::Missing { from: 3, to: 3 }]);
    }

    #[test]
    fn the_longest_wait_is_the_one_that_touches_the_gap() {
        let mut ledger = Ledger::default();
        for (ms, seq) in [(0, 1), (10, 2), (90, 3), (95, 4), (300, 5)] {
            ledger.enter(Stamp(ms * 1_000), event(1, seq));
        }
        let ms = |n: u64| Stamp(n * 1_000);
        assert_eq!(ledger.longest_wait(ms(20), ms(60)), Duration::from_millis(80));
        assert_eq!(ledger.longest_wait(ms(91), ms(94)), Duration::from_millis(5));
    }
}
