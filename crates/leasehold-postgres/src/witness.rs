//! The crash witness: an advisory lock of the session that listens, which the server frees when the operating system ends
//! the process.
//!
//! A claim that was made with it names the lock's key, 64 random bits of this process and store. The statement that
//! acquires tries the lock: if nobody holds it, the holder's process has ended, and the lease is given on, under a higher
//! fence, whatever is left of its ttl. The statement that renews tries the same, so that a holder without its witness soon
//! knows that its lease is in danger: a renewal that is refused for it has the witness connected again, and extends nothing.
//!
//! What it rests on, and where it ends:
//!
//! * **A free lock means a lost connection, not a dead process.** A restart of the server, a failover,
//!   `pg_terminate_backend` or a cut cable frees it as well. Whoever then bids before the witness is connected again takes
//!   the lease from a holder who works. Therefore it is for fenced resources only, and off by default.
//! * A connection that ends is made again at once; if that fails, after pauses of 50 to 500 ms.
//! * A paused process keeps its connection: it still costs the ttl. So does a host that vanishes, until the server finds
//!   the connection dead (`tcp_keepalives_idle`, two hours by default; set it lower).
//! * Behind a pooler that gives each transaction another connection there is none: a bid that asks for it is refused.
//! * Whoever waits asks: one small request each [`witness_poll`](crate::Config::with_witness_poll) for all leases that it
//!   watches and that others hold this way.

use crate::{
    error::Failure,
    link::{Again, Link},
};
use leasehold_core::AttemptId;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::types::Type;

/// What the process knows of its own witness. Shared by those who make claims and the task that keeps it connected.
#[derive(Debug)]
pub(crate) struct Presence {
    key: i64,
    is_wanted: AtomicBool,
    is_seen: AtomicBool,
}

impl Presence {
    pub(crate) fn new() -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *AttemptId::random().as_bytes();
        let key = i64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        Self { key, is_wanted: AtomicBool::new(false), is_seen: AtomicBool::new(false) }
    }

    /// The key of the lock.
    pub(crate) const fn key(&self) -> i64 {
        self.key
    }

    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::Release);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire)
    }

    /// Whether the lock was taken, and nothing was heard to the contrary since.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Acquire)
    }

    pub(crate) fn set_seen(&self, is_seen: bool) {
        self.is_seen.store(is_seen, Ordering::Release);
    }
}

/// Which of these witnesses nobody holds. Not to be asked on the connection that holds one: a session is never in its own
/// way.
pub(crate) async fn silent(link: &Link, witnesses: &[i64]) -> Result<Vec<i64>, Failure> {
    let rows = link.ask(&link.texts().silent, &[(&witnesses, Type::INT8_ARRAY)], Again::May).await?;
    Ok(rows.iter().filter_map(|row| row.try_get(0).ok()).collect())
}
