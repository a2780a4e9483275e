//! What is still to happen, in the order of its time.

use std::{cmp::Reverse, collections::BinaryHeap};

/// A queue over virtual time. What is due at the same time happens in the order in which it was added.
#[derive(Debug)]
pub(super) struct Queue<T> {
    due: BinaryHeap<Reverse<Due<T>>>,
    added: u64,
}

#[derive(Debug)]
struct Due<T> {
    at: u64,
    number: u64,
    what: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<T> Queue<T> {
    pub(super) const fn new() -> Self {
        Self { due: BinaryHeap::new(), added: 0 }
    }

    pub(super) fn add(&mut self, at: u64, what: T) {
        self.added += 1;
        self.due.push(Reverse(Due { at, number: self.added, what }));
    }

    /// The next thing, if it is due by `until`.
    pub(super) fn next(&mut self, until: u64) -> Option<(u64, T)> {
        if self.due.peek()?.0.at > until {
            return None;
        }
        self.due.pop().map(|Reverse(due)| (due.at, due.what))
    }
}
