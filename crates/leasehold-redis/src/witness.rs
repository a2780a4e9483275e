//! The crash witness: a subscription that the server can see, and that the operating system ends with the process.
//!
//! A claim that was made with it names the channel. The script that acquires asks `PUBSUB NUMSUB`, and takes the lease of
//! a holder whom nobody hears any more, under a higher fence, whatever is left of its ttl. The script that renews asks
//! the same, so that a holder without its witness soon knows that its lease is in danger: a renewal that is refused for
//! it has the witness connected again, and extends nothing. Its standing is jeopardy meanwhile, and lost at its deadline.
//!
//! What it rests on, and where it ends:
//!
//! * **A silent channel means a lost connection, not a dead process.** A restart of the server, a failover, `CLIENT KILL`
//!   or a cut cable silences it as well. Whoever then bids before the witness is connected again takes the lease from a
//!   holder who works. Therefore it is for fenced resources only, and off by default.
//! * A connection that ends is made again at once; if that fails, after pauses of 25 to 500 ms.
//! * The count is of the server that is asked: `NUMSUB` knows no subscribers of other nodes. In a Cluster the witness is
//!   subscribed at every primary. One that joins, or is promoted, is found within two seconds, and until then a lease
//!   there can be taken.
//! * A paused process keeps its connection: it still costs the ttl. So does a host that vanishes, until the server finds
//!   the connection dead (`tcp-keepalive`, 300 s by default; set it lower).
//! * Redis tells nobody that a subscriber has gone: no keyspace event, no invalidation, no blocked command ends with it.
//!   Whoever waits asks: one small request each [`witness_poll`](crate::Config::with_witness_poll) for all leases that it
//!   watches and that others hold this way. In a Cluster each node is asked, and a process counts as alive as long as one
//!   of them hears it.
//!
//! The poll is the price of the speed: 100 requests a second for each process that waits, at the default of 10 ms, for a
//! takeover 5 ms after the crash in the mean. A hundred processes at 100 ms cost a server 1,000 requests a second.

use crate::{
    error::{Failure, Fault},
    keys::Keys,
    link::Link,
};
use futures_util::{
    StreamExt,
    future::{join_all, select_all, try_join_all},
};
use leasehold_core::AttemptId;
use redis::{FromRedisValue, RedisError, Value, aio::PubSub};
use std::{
    collections::{BTreeSet, HashMap},
    sync::atomic::{AtomicBool, Ordering},
};
use tokio::time::timeout;

/// What the process knows of its own witness. Shared by those who make claims and the task that keeps it connected.
#[derive(Debug)]
pub(crate) struct Presence {
    nonce: String,
    channel: String,
    is_wanted: AtomicBool,
    is_seen: AtomicBool,
}

impl Presence {
    pub(crate) fn new(keys: &Keys) -> Self {
        let nonce = AttemptId::random().to_hex();
        let channel = keys.witness(&nonce);
        Self { nonce, channel, is_wanted: AtomicBool::new(false), is_seen: AtomicBool::new(false) }
    }

    /// 128 random bits, of this process and store alone.
    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::Release);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire)
    }

    /// Whether the servers have confirmed it, and nothing was heard to the contrary since.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Acquire)
    }

    pub(crate) fn set_seen(&self, is_seen: bool) {
        self.is_seen.store(is_seen, Ordering::Release);
    }
}

/// The witness at the primaries of a Cluster. At a single server, the connection on which the rest is heard does for it.
#[derive(Default)]
pub(crate) struct Witness {
    ears: Vec<PubSub>,
    primaries: BTreeSet<String>,
    /// Whether it is to be connected anew. Until that has succeeded, what is left of it stays.
    is_stale: bool,
}

impl Witness {
    pub(crate) const fn is_connected(&self) -> bool {
        !self.ears.is_empty()
    }

    /// Subscribes at every primary, unless it is.
    pub(crate) async fn connect(&mut self, link: &Link, channel: &str) -> Result<(), Failure> {
        if self.is_connected() && !self.is_stale {
            return Ok(());
        }
        let primaries = primaries(link).await?;
        let mut ears = link.ears().await?;
        let subscribing = ears.iter_mut().map(|ear| within(link, ear.subscribe(channel)));
        try_join_all(subscribing).await?;
        // The old ones end only now: where they still were, the channel was never silent.
        *self = Self { ears, primaries, is_stale: false };
        Ok(())
    }

    /// Somebody says that it is not seen.
    pub(crate) const fn doubt(&mut self) {
        self.is_stale = true;
    }

    /// Whether all connections answer, and are to the primaries of today, as far as anybody says. If not, they are to be
    /// made anew.
    pub(crate) async fn check(&mut self, link: &Link) -> bool {
        let asking = self.ears.iter_mut().map(|ear| within(link, ear.ping::<Value>()));
        let answer = join_all(asking).await.iter().all(Result::is_ok);
        let moved = primaries(link).await.is_ok_and(|primaries| primaries != self.primaries);
        self.is_stale |= !answer || moved;
        !self.is_stale
    }

    /// Waits until one of the connections ends; for ever if there is none, or if it is known already.
    pub(crate) async fn broken(&mut self) {
        if self.ears.is_empty() || self.is_stale {
            return std::future::pending().await;
        }
        let ends = self.ears.iter_mut().map(|ear| {
            Box::pin(async move {
                let mut messages = ear.on_message();
                // Nobody publishes here; whoever does says nothing.
                while messages.next().await.is_some() {}
            })
        });
        select_all(ends).await;
    }
}

async fn within<T, E: Into<Failure>>(
    link: &Link,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    let patience = link.config().response_timeout;
    match timeout(patience, work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(Fault::Silence(patience).into()),
    }
}

/// Who the primaries are, by address and id.
async fn primaries(link: &Link) -> Result<BTreeSet<String>, Failure> {
    let slots = within(link, link.ask(redis::cmd("CLUSTER").arg("SLOTS"))).await?;
    let ranges = Vec::<Vec<Value>>::from_redis_value(slots).map_err(RedisError::from)?;
    let primary = |range: Vec<Value>| match range.into_iter().nth(2) {
        Some(Value::Array(node)) => node.into_iter().take(3).map(|word| format!("{word:?} ")).collect(),
        other => format!("{other:?}"),
    };
    Ok(ranges.into_iter().map(primary).collect())
}

/// Which of these channels nobody hears: in a Cluster, at none of its nodes.
pub(crate) async fn silent(link: &Link, channels: &[String]) -> Result<Vec<String>, Failure> {
    let mut ask = redis::cmd("PUBSUB");
    ask.arg("NUMSUB").arg(channels);
    // Whoever hears must not wait for long for anything else.
    let answer: Value = within(link, link.ask(&ask)).await?;
    let counts = HashMap::<String, u64>::from_redis_value(answer).map_err(RedisError::from)?;
    Ok(counts.into_iter().filter(|(_, count)| *count == 0).map(|(channel, _)| channel).collect())
}
