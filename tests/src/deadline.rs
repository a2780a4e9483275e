//! How long a test waits for what must happen.

use leasehold::{BootClock, Clock, Moment};
use std::time::Duration;

/// How long anything is waited for that must happen: far longer than it takes on a busy machine. No test passes or
/// fails by how quick this machine is; where time is part of a promise, stamps of one clock are compared.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A moment by which something must have happened.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    end: Moment,
}

impl Deadline {
    /// [`PATIENCE`] from now.
    #[must_use]
    pub fn patient() -> Self {
        Self::within(PATIENCE)
    }

    /// Some time from now.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        Self { end: BootClock.now().after(time) }
    }

    /// What is left of it; zero once it is over.
    #[must_use]
    pub fn left(self) -> Duration {
        self.end.since(BootClock.now())
    }

    /// Asks until the answer is there. For what tells no news by itself: a process's end, a record in a store.
    ///
    /// # Panics
    /// When time is up; `what` says what was waited for.
    pub fn poll<T>(self, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(answer) = ask() {
                return answer;
            }
            assert!(!self.left().is_zero(), "waited in vain until {what}");
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}
