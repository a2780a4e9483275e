//! How time passes for the store under test.

use leasehold_core::{BoxFuture, ManualClock};
use std::{fmt, time::Duration};

/// Moves the clock by which the store judges expiry.
pub trait Passing: fmt::Debug + Send + Sync + 'static {
    /// Returns when at least this much time has passed by the store's clock.
    fn pass(&self, duration: Duration) -> BoxFuture<'_, ()>;

    /// Whether passing an hour costs an hour. Cases that would have to wait long are skipped then.
    fn is_real(&self) -> bool;
}

/// A clock in the hands of the test.
impl Passing for ManualClock {
    fn pass(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.advance(duration) })
    }

    fn is_real(&self) -> bool {
        false
    }
}

/// The clock of a real server: time passes by waiting for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealTime;

impl Passing for RealTime {
    fn pass(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn is_real(&self) -> bool {
        true
    }
}
