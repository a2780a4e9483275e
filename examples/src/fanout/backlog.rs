//! What a leader has read of the feed and keeps for the slowest of its lanes, within a bound.

use super::event::Event;
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// The newest events of the feed, one run without gaps.
#[derive(Debug)]
pub struct Backlog {
    kept: Mutex<VecDeque<Event>>,
    bound: usize,
    // The number of the next event to be read: the reader moves it, and lanes sleep on it.
    next: watch::Sender<u64>,
}

/// What a lane finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The events that it needs next: at least one.
    Events(Vec<Event>),
    /// They are no longer kept: the lane must read `..oldest` from the feed itself.
    Behind {
        /// The oldest event that is kept.
        oldest: u64,
    },
}

impl Backlog {
    /// An empty backlog, to be filled from event `first` on, that keeps the newest `bound` events.
    #[must_use]
    pub fn new(first: u64, bound: usize) -> Self {
        Self { kept: Mutex::default(), bound: bound.max(1), next: watch::Sender::new(first) }
    }

    /// The event that the reader should read next.
    #[must_use]
    pub fn next(&self) -> u64 {
        *self.next.borrow()
    }

    /// Adds what was read; what is known already, or would leave a gap, is not taken.
    pub fn push(&self, events: Vec<Event>) {
        let mut next = self.next();
        {
            let mut kept = self.kept();
            for event in events {
                if event.seq == next {
                    next += 1;
                    kept.push_back(event);
                }
            }
            let excess = kept.len().saturating_sub(self.bound);
            kept.drain(..excess);
        }
        self.next.send_replace(next);
    }

    /// What follows event `last`, at most `limit` events. Waits until there is something; safe to drop.
    pub async fn after(&self, last: u64, limit: usize) -> Piece {
        let mut next = self.next.subscribe();
        loop {
            let seen = *next.borrow_and_update();
            {
                let kept = self.kept();
                let oldest = kept.front().map_or(seen, |e| e.seq);
                if last + 1 < oldest {
                    return Piece::Behind { oldest };
                }
                let skip = usize::try_from(last + 1 - oldest).unwrap_or(usize::MAX);
                let events: Vec<Event> = kept.iter().skip(skip).take(limit).cloned().collect();
                if !events.is_empty() {
                    return Piece::Events(events);
                }
            }
            // The sender is our own field: it cannot have gone.
            let _ = next.changed().await;
        }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Event>> {
        // No code of a caller runs under this lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn events(numbers: impl IntoIterator<Item = u64>) -> Vec<Event> {
        numbers.into_iter().map(|seq| Event { seq, payload: String::new() }).collect()
    }

    #[tokio::test]
    async fn a_lane_gets_what_follows_and_learns_when_it_is_too_far_behind() {
        let backlog = Backlog::new(11, 4);
        assert_eq!(backlog.after(3, 9).await, Piece::Behind { oldest: 11 });
        backlog.push(events(11..=13));
        assert_eq!(backlog.after(11, 1).await, Piece::Events(events([12])));
        backlog.push(events(12..=16));
        assert_eq!(backlog.next(), 17);
        assert_eq!(backlog.after(12, 9).await, Piece::Events(events(13..=16)), "the bound keeps four");
        assert_eq!(backlog.after(11, 9).await, Piece::Behind { oldest: 13 });
    }

    #[tokio::test]
    async fn a_piece_that_would_leave_a_gap_is_not_taken() {
        let backlog = Backlog::new(1, 9);
        backlog.push(events([1, 2, 4]));
        assert_eq!(backlog.next(), 3);
    }

    #[tokio::test]
    async fn a_lane_that_is_up_to_date_sleeps_until_there_is_more() {
        let backlog = Arc::new(Backlog::new(1, 9));
        let lane = tokio::spawn({
            let backlog = Arc::clone(&backlog);
            async move { backlog.after(0, 9).await }
        });
        tokio::task::yield_now().await;
        assert!(!lane.is_finished());
        backlog.push(events([1]));
        assert_eq!(lane.await.unwrap(), Piece::Events(events([1])));
    }
}
