//! What happened so far, and waiting for what comes next.

use crate::Deadline;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// An append-only journal that one thread writes and a test reads.
#[derive(Debug)]
pub struct Log<T> {
    pages: Mutex<Pages<T>>,
    news: Condvar,
}

#[derive(Debug)]
struct Pages<T> {
    entries: Vec<T>,
    closed: bool,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self { pages: Mutex::new(Pages { entries: Vec::new(), closed: false }), news: Condvar::new() }
    }
}

impl<T: Clone> Log<T> {
    fn pages(&self) -> MutexGuard<'_, Pages<T>> {
        // A push is whole or not there at all.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry.
    pub fn push(&self, entry: T) {
        self.pages().entries.push(entry);
        self.news.notify_all();
    }

    /// Says that nothing more will come.
    pub fn close(&self) {
        self.pages().closed = true;
        self.news.notify_all();
    }

    /// Everything so far.
    #[must_use]
    pub fn all(&self) -> Vec<T> {
        self.pages().entries.clone()
    }

    /// Waits for an entry at or behind `from` that `fits`. Its place and itself; `None` when time is up, or when
    /// nothing more will come. `fits` must not ask this log.
    pub fn wait(&self, from: usize, deadline: Deadline, fits: impl Fn(&T) -> bool) -> Option<(usize, T)> {
        let mut pages = self.pages();
        let mut looked_at = from;
        loop {
            for at in looked_at..pages.entries.len() {
                if fits(&pages.entries[at]) {
                    return Some((at, pages.entries[at].clone()));
                }
            }
            looked_at = looked_at.max(pages.entries.len());
            let left = deadline.left();
            if pages.closed || left.is_zero() {
                return None;
            }
            (pages, _) = self.news.wait_timeout(pages, left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
