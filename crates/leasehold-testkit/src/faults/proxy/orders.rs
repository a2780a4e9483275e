//! What a proxy was told to do, and what it did.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
    /// Both.
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

impl Direction {
    pub(super) fn each(self, mut order: impl FnMut(Way)) {
        if self != Self::Down {
            order(Way::Up);
        }
        if self != Self::Up {
            order(Way::Down);
        }
    }
}

/// What happens to one direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    pub(super) delay: Duration,
    pub(super) swallow: bool,
    pub(super) hold: bool,
    pub(super) truncate: Option<usize>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    up: Lane,
    down: Lane,
    pub(super) refuse: bool,
    /// Connections of an older generation are reset.
    pub(super) generation: u64,
    /// Counts the orders to truncate, so that each connection begins its count anew at each.
    pub(super) truncation: u64,
}

impl Orders {
    /// No faults; connections that are open stay so.
    pub(super) fn heal(&mut self) {
        *self = Self { generation: self.generation, truncation: self.truncation + 1, ..Self::default() };
    }

    pub(super) const fn way(&mut self, way: Way) -> &mut Lane {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }

    pub(super) const fn lane(&self, way: Way) -> &Lane {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }
}

/// Breaks the connection of a command to come.
#[derive(Debug, Clone)]
pub(super) struct Ambush {
    pub(super) left: u64,
    pub(super) lose_reply: bool,
    /// What the command holds; any one if it is empty.
    pub(super) word: Vec<u8>,
}

impl Ambush {
    pub(super) fn waits_for(&self, command: &[u8]) -> bool {
        self.word.is_empty()
            || command.windows(self.word.len()).any(|part| part.eq_ignore_ascii_case(&self.word))
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) connections: AtomicU64,
    pub(super) commands: AtomicU64,
    pub(super) swallowed: AtomicU64,
    pub(super) broken: AtomicU64,
}

impl Counts {
    pub(super) fn add(count: &AtomicU64, n: usize) {
        count.fetch_add(n as u64, Ordering::SeqCst);
    }

    pub(super) fn read(count: &AtomicU64) -> u64 {
        count.load(Ordering::SeqCst)
    }
}
