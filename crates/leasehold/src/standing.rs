//! The ordered stream of standings.

use leasehold_core::{Fence, Standing};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// How many ended terms are kept for a reader that does not read. Older ones are dropped, and it is told how many.
const MAX_UNREAD: usize = 1_024;

/// One entry of the stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stood {
    /// The fence of the term.
    pub fence: Fence,
    /// How it stands.
    pub standing: Standing,
    /// How many entries before this one were dropped because the reader was too slow by far; usually 0. Never the
    /// `Lost` of a term whose later standing is delivered.
    pub skipped: u64,
}

/// The standings of one lease or election, in order.
///
/// A slow reader sees fewer `Held` and `Jeopardy` of one term (the latest counts), but every term's `Lost`, and each step of
/// a handoff. It never holds up a renewal.
#[derive(Debug)]
pub struct Standings {
    line: Arc<Line>,
}

/// The writing side.
#[derive(Debug, Clone)]
pub(crate) struct StandingFeed {
    line: Arc<Line>,
    // The stream ends with the last feed.
    #[allow(dead_code, reason = "held for its drop")]
    alive: Arc<Alive>,
}

#[derive(Debug, Default)]
struct Line {
    // A std mutex: held for a push or a pop, never over an await.
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Stood>,
    skipped: u64,
    closed: bool,
}

#[derive(Debug)]
struct Alive(Arc<Line>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.queue().closed = true;
        self.0.news.notify_one();
    }
}

impl Line {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standings {
    pub(crate) fn open() -> (StandingFeed, Self) {
        let line = Arc::new(Line::default());
        (StandingFeed { line: line.clone(), alive: Arc::new(Alive(line.clone())) }, Self { line })
    }

    /// The next standing; `None` once the lease or election is over. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Stood> {
        loop {
            {
                let mut queue = self.line.queue();
                if let Some(mut stood) = queue.waiting.pop_front() {
                    stood.skipped = std::mem::take(&mut queue.skipped);
                    return Some(stood);
                }
                if queue.closed {
                    return None;
                }
            }
            self.line.news.notified().await;
        }
    }
}

impl StandingFeed {
    pub(crate) fn tell(&self, fence: Fence, standing: Standing) {
        let mut queue = self.line.queue();
        let last = queue.waiting.back();
        if last.is_some_and(|last| last.fence == fence && passes(&last.standing)) && passes(&standing) {
            // Coalesced: the latest standing of a living term is all that counts.
            queue.waiting.pop_back();
        } else if queue.waiting.len() >= MAX_UNREAD {
            queue.waiting.pop_front();
            queue.skipped += 1;
        }
        queue.waiting.push_back(Stood { fence, standing, skipped: 0 });
        drop(queue);
        self.line.news.notify_one();
    }
}

/// Whether only the latest such standing of a term counts.
const fn passes(standing: &Standing) -> bool {
    matches!(standing, Standing::Held { .. } | Standing::Jeopardy { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::{LostCause, Moment};

    fn held(n: u64) -> Standing {
        Standing::Held { until: Moment::from_nanos(n) }
    }

    #[tokio::test]
    async fn a_slow_reader_sees_every_loss_and_only_the_latest_of_what_went_before() {
        let (feed, mut standings) = Standings::open();
        for term in 1..=3 {
            let fence = Fence::new(term).unwrap();
            for n in 0..100 {
                feed.tell(fence, held(n));
            }
            feed.tell(fence, Standing::Lost { cause: LostCause::Expired });
        }
        drop(feed);
        let mut seen = Vec::new();
        while let Some(stood) = standings.next().await {
            seen.push((stood.fence.get(), stood.standing));
        }
        let lost = Standing::Lost { cause: LostCause::Expired };
        let term = |n| [(n, held(99)), (n, lost.clone())];
        assert_eq!(seen, [term(1), term(2), term(3)].concat());
    }

    #[tokio::test]
    async fn a_reader_that_never_reads_is_told_how_much_it_missed() {
        let (feed, mut standings) = Standings::open();
        for term in 1..=(MAX_UNREAD as u64 + 7) {
            feed.tell(Fence::new(term).unwrap(), Standing::Lost { cause: LostCause::Expired });
        }
        let first = standings.next().await.unwrap();
        assert_eq!((first.fence.get(), first.skipped), (8, 7));
        assert_eq!(standings.next().await.unwrap().skipped, 0);
    }
}
