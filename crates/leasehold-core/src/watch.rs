//! A subscription to leases: states, not edges, so that a missed event costs time and never truth.

use crate::{LeaseName, LeaseRecord, NameSet, StoreError};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Which leases to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every lease of the store, also those that do not exist yet.
    All,
    /// These.
    Names(Vec<LeaseName>),
    /// Those in a set that changes while it is watched: one subscription for the many leases of a process that come and
    /// go. A name that was added may be followed a few seconds later. Its present state may stay untold, and so may its
    /// expiry; what is told may be told again.
    Live(NameSet),
}

impl Scope {
    /// Whether a lease is watched.
    #[must_use]
    pub fn covers(&self, name: &LeaseName) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.contains(name),
            Self::Live(names) => names.contains(name),
        }
    }

    /// Whether its names may change.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }
}

/// What a watcher sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Sighting {
    /// The present state of one lease: once at the beginning for each existing lease, after each change, and again
    /// after a broken subscription was restored. States that follow each other faster than they are read are
    /// coalesced: the latest is kept.
    State(LeaseRecord),
    /// The subscription is broken, and the store is restoring it. Until the next state, expiry is all there is.
    Trouble(StoreError),
}

/// The reading side. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Watch {
    desk: Arc<Desk>,
}

/// The writing side, for stores. Never blocks: it keeps at most one state a lease, and one trouble.
#[derive(Debug, Clone)]
pub struct WatchFeed {
    desk: Arc<Desk>,
    // Counts the feeds: when the last is gone the watch ends.
    #[allow(dead_code, reason = "held for its drop")]
    alive: Arc<FeedAlive>,
}

#[derive(Debug, Default)]
struct Desk {
    // A std mutex: never held over an await, and taken from store threads as well as from tasks.
    pile: Mutex<Pile>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Pile {
    // Names in the order in which they first changed; the state lives in `latest`.
    order: VecDeque<LeaseName>,
    latest: HashMap<LeaseName, LeaseRecord>,
    shown: HashMap<LeaseName, LeaseRecord>,
    // What was shown is not kept: names that went would be kept for ever.
    forgets: bool,
    trouble: Option<StoreError>,
    reader_gone: bool,
    closed: bool,
}

#[derive(Debug)]
struct FeedAlive(Arc<Desk>);

impl Drop for FeedAlive {
    fn drop(&mut self) {
        self.0.pile().closed = true;
        self.0.news.notify_one();
    }
}

impl Desk {
    fn pile(&self) -> MutexGuard<'_, Pile> {
        // A panic while holding the lock leaves whole values behind: every change is a single assignment.
        self.pile.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// A watch and its feed.
    #[must_use]
    pub fn open() -> (WatchFeed, Self) {
        Self::with(false)
    }

    /// A watch of a scope, and its feed. That of a [live](Scope::Live) scope shows whatever it is fed.
    #[must_use]
    pub fn of(scope: &Scope) -> (WatchFeed, Self) {
        Self::with(scope.is_live())
    }

    fn with(forgets: bool) -> (WatchFeed, Self) {
        let pile = Mutex::new(Pile { forgets, ..Pile::default() });
        let desk = Arc::new(Desk { pile, news: Notify::new() });
        (WatchFeed { desk: desk.clone(), alive: Arc::new(FeedAlive(desk.clone())) }, Self { desk })
    }

    /// The next sighting; `None` once the store is closed. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Sighting> {
        loop {
            {
                let mut pile = self.desk.pile();
                if let Some(trouble) = pile.trouble.take() {
                    return Some(Sighting::Trouble(trouble));
                }
                if let Some(name) = pile.order.pop_front()
                    && let Some(record) = pile.latest.remove(&name)
                {
                    if !pile.forgets {
                        pile.shown.insert(name, record.clone());
                    }
                    return Some(Sighting::State(record));
                }
                if pile.closed {
                    return None;
                }
            }
            self.desk.news.notified().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.desk.pile().reader_gone = true;
    }
}

impl WatchFeed {
    /// Shows a state. One that tells the same story as the state shown last is dropped, so a store may offer
    /// whatever it re-read, unless the scope is [live](Scope::Live).
    pub fn state(&self, record: LeaseRecord) {
        let mut pile = self.desk.pile();
        let name = record.name.clone();
        let before = pile.latest.get(&name).or_else(|| pile.shown.get(&name));
        if before.is_some_and(|before| before.same_standing(&record)) {
            return;
        }
        if pile.latest.insert(name.clone(), record).is_none() {
            pile.order.push_back(name);
        }
        drop(pile);
        self.desk.news.notify_one();
    }

    /// Says that the subscription is broken. The next states are shown even if they tell nothing new.
    pub fn trouble(&self, error: StoreError) {
        let mut pile = self.desk.pile();
        pile.trouble = Some(error);
        pile.shown.clear();
        drop(pile);
        self.desk.news.notify_one();
    }

    /// Whether nobody reads any more: the store should end the subscription.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.desk.pile().reader_gone
    }
}
