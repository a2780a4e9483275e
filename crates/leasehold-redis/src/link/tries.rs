//! One request that may take several tries, and what is known of it over all of them.

use crate::error::Failure;
use redis::RedisError;
use std::time::Duration;

/// A refusal by a server that is not in charge is tried again so often, after one, two, three … pauses.
const REFUSALS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(10);

/// What is known of the earlier tries of one request.
pub(super) struct Tries {
    /// Whether it may be repeated when it was perhaps done.
    again: bool,
    /// Whether it was perhaps done.
    pub(super) lost: bool,
    /// How often it was certainly not done.
    refused: u32,
}

impl Tries {
    pub(super) const fn new(repeatable: bool) -> Self {
        Self { again: repeatable, lost: false, refused: 0 }
    }

    /// Whether to try again after a connection that ended.
    pub(super) fn again(&mut self, error: &RedisError) -> bool {
        let again = std::mem::take(&mut self.again) && error.is_connection_dropped();
        self.lost |= again;
        again
    }

    /// Whether to try again after a refusal of a server that is not in charge, when there was time to find the right one.
    pub(super) async fn once_more(&mut self) -> bool {
        self.refused += 1;
        tokio::time::sleep(PAUSE * self.refused).await;
        self.refused < REFUSALS
    }

    /// A failure of the last try as one of all.
    pub(super) fn told(&self, failure: Failure) -> Failure {
        failure.or_done(self.lost)
    }
}
