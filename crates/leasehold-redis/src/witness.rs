//! The crash witness: a subscription that the server can see, and that the operating system ends with the process.
//!
//! A claim that was made with it names the channel. The script that acquires asks `PUBSUB NUMSUB`, and takes the lease of
//! a holder whom nobody hears any more, under a higher fence, whatever is left of its ttl. The script that renews asks
//! the same, so that a holder without its witness soon knows that its lease is in danger.
//!
//! What it rests on, and where it ends:
//!
//! * **A silent channel means a lost connection, not a dead process.** A restart of the server, a failover, `CLIENT KILL`
//!   or a cut cable silences it as well. Whoever then bids before the witness is connected again takes the lease from a
//!   holder who works. Therefore it is for fenced resources only, and off by default.
//! * The count is of the server that is asked. In a Cluster the witness is subscribed at every primary.
//! * A paused process keeps its connection: it still costs the ttl. So does a host that vanishes, until the server finds
//!   the connection dead (`tcp-keepalive`, 300 s by default; set it lower).
//! * Redis tells nobody that a subscriber has gone. Whoever waits asks: one small request each
//!   [`witness_poll`](crate::Config::with_witness_poll) for all leases that it watches and that are held this way.

use crate::{error::Failure, link::Link};
use futures_util::StreamExt;
use leasehold_core::AttemptId;
use redis::{FromRedisValue, Value, aio::PubSub};
use std::collections::{BTreeSet, HashMap};
use tokio::time::timeout;

/// The witness of this process.
pub(crate) struct Witness {
    channel: String,
    wanted: bool,
    /// In a Cluster, a connection to each primary: the one on which the rest is heard reaches only one of them.
    ears: Vec<PubSub>,
}

impl Witness {
    pub(crate) fn new(link: &Link) -> Self {
        let channel = link.keys().witness(&AttemptId::random().to_hex());
        Self { channel, wanted: false, ears: Vec::new() }
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    pub(crate) const fn want(&mut self) {
        self.wanted = true;
    }

    pub(crate) const fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Subscribes at every primary of a Cluster; elsewhere the common connection does.
    pub(crate) async fn connect(&mut self, link: &Link) -> Result<(), Failure> {
        if !self.wanted || !link.is_sharded() || !self.ears.is_empty() {
            return Ok(());
        }
        let mut ears = link.ears().await?;
        for ear in &mut ears {
            match timeout(link.config().response_timeout, ear.subscribe(&self.channel)).await {
                Ok(done) => done?,
                Err(_) => return Err(crate::error::Fault::Silence(link.config().response_timeout).into()),
            }
        }
        self.ears = ears;
        Ok(())
    }

    /// Lets go of the connections, so that they are made anew.
    pub(crate) fn disconnect(&mut self) {
        self.ears.clear();
    }

    /// Waits until one of the connections to the primaries ends; for ever if there is none.
    pub(crate) async fn broken(&mut self) {
        if self.ears.is_empty() {
            return std::future::pending().await;
        }
        let ends = self.ears.iter_mut().map(|ear| {
            Box::pin(async move {
                let mut messages = ear.on_message();
                // Nobody publishes here; whoever does says nothing.
                while messages.next().await.is_some() {}
            })
        });
        futures_util::future::select_all(ends).await;
    }
}

/// Which of these channels nobody hears. Not for a Cluster, where one server does not know.
pub(crate) async fn silent(link: &Link, channels: &BTreeSet<&str>) -> Result<BTreeSet<String>, Failure> {
    let mut ask = redis::cmd("PUBSUB");
    ask.arg("NUMSUB");
    for channel in channels {
        ask.arg(channel);
    }
    let answer: Value = link.ask(&ask).await?;
    let counts = HashMap::<String, u64>::from_redis_value(answer).map_err(redis::RedisError::from)?;
    Ok(counts.into_iter().filter(|(_, count)| *count == 0).map(|(channel, _)| channel).collect())
}
