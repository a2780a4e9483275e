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
//! The poll is the price of the speed: 100 requests a second at the default of 10 ms, for a takeover 5 ms after the crash in
//! the mean. However many processes wait for a lease, they share it: the more they are, the more
//! seldom each asks, and whoever notices a crash tells it to all.

mod presence;

pub(crate) use presence::{Presence, Seen};

use crate::{
    config::Node,
    error::{Failure, Fault},
    link::Link,
};
use futures_util::{
    StreamExt,
    future::{join_all, select_all},
};
use leasehold_core::StoreErrorKind;
use redis::{FromRedisValue, RedisError, Value, aio::PubSub};
use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeInclusive,
};
use tokio::time::timeout;

/// How many slots a Cluster has.
const SLOTS: usize = 16_384;

/// Who has which slots.
type Shards = Vec<(RangeInclusive<u16>, Node)>;

/// The witness at the primaries of a Cluster. At a single server, the connection on which the rest is heard does for it.
///
/// A claim's witness is looked at by the one primary that has the claim's slot. Each primary stands for itself: one that is
/// down costs no other its witness, and where the witness is not subscribed no claim is made with it.
#[derive(Default)]
pub(crate) struct Witness {
    ears: BTreeMap<Node, PubSub>,
    /// As one node saw it when the ears were connected last: connections and slots are of the same answer.
    shards: Shards,
    /// Whether something is missing, or has changed.
    is_stale: bool,
    /// Whether no ear is believed. Until there is another one, each stays.
    is_doubted: bool,
}

impl Witness {
    pub(crate) fn is_connected(&self) -> bool {
        !self.ears.is_empty()
    }

    /// The slots whose primaries see it.
    pub(crate) fn seen(&self) -> Seen {
        let heard = self.shards.iter().filter(|(_, node)| self.ears.contains_key(node));
        Seen::At(heard.map(|(slots, _)| slots.clone()).collect())
    }

    /// Subscribes at every primary, unless it is. After a failure it is where it could be.
    pub(crate) async fn connect(&mut self, link: &Link, channel: &str) -> Result<(), Failure> {
        if self.is_connected() && !self.is_stale {
            return Ok(());
        }
        let shards = within(link, link.shards()).await?;
        let all_doubted = self.is_doubted;
        let mut nodes: Vec<Node> = shards.iter().map(|(_, node)| node.clone()).collect();
        nodes.sort();
        nodes.dedup();
        let wanted = nodes.iter().filter(|node| all_doubted || !self.ears.contains_key(node));
        let connecting = wanted.map(|node| async move {
            let subscribed = async {
                let mut ear = link.ear_at(node).await.map_err(Failure::from)?;
                within(link, ear.subscribe(channel)).await?;
                Ok::<_, Failure>(ear)
            };
            (node.clone(), subscribed.await)
        });
        let mut done = Ok(());
        for (node, subscribed) in join_all(connecting).await {
            match subscribed {
                // The old one ends only now: where it still was, the channel was never silent.
                Ok(ear) => drop(self.ears.insert(node, ear)),
                Err(failure) => done = Err(failure),
            }
        }
        if covers_all(&shards) {
            self.ears.retain(|node, _| nodes.contains(node));
        } else if done.is_ok() {
            // The view of a node that does not know all others yet, or a Cluster that lacks a primary.
            done = Err(StoreErrorKind::Unreachable.into());
        }
        self.shards = shards;
        self.is_doubted &= done.is_err();
        self.is_stale = done.is_err();
        done
    }

    /// Somebody says that it is not seen somewhere.
    pub(crate) const fn doubt(&mut self) {
        (self.is_stale, self.is_doubted) = (true, true);
    }

    /// Whether all connections answer, and are to the primaries of today, as far as anybody says. If not, those that are
    /// missing are to be made.
    pub(crate) async fn check(&mut self, link: &Link) -> bool {
        let asking = self.ears.iter_mut().map(|(node, ear)| async {
            let answer = within(link, ear.ping::<Value>()).await;
            answer.is_err().then(|| node.clone())
        });
        let silent: Vec<Node> = join_all(asking).await.into_iter().flatten().collect();
        silent.iter().for_each(|node| drop(self.ears.remove(node)));
        let moved = within(link, link.shards()).await.is_ok_and(|shards| shards != self.shards);
        self.is_stale |= !silent.is_empty() || moved;
        !self.is_stale
    }

    /// Waits until one of the connections ends, which is then none; for ever if there is none.
    pub(crate) async fn broken(&mut self) {
        if self.ears.is_empty() {
            return std::future::pending().await;
        }
        let ends = self.ears.iter_mut().map(|(node, ear)| {
            Box::pin(async move {
                let mut messages = ear.on_message();
                // Nobody publishes here; whoever does says nothing.
                while messages.next().await.is_some() {}
                node.clone()
            })
        });
        let (node, ..) = select_all(ends).await;
        self.ears.remove(&node);
        self.is_stale = true;
    }
}

/// Whether each slot has a primary.
fn covers_all(shards: &Shards) -> bool {
    shards.iter().map(|(slots, _)| slots.len()).sum::<usize>() >= SLOTS
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

/// Which of these channels nobody hears: in a Cluster, at none of its nodes.
pub(crate) async fn silent(link: &Link, channels: &[String]) -> Result<Vec<String>, Failure> {
    let counts = hearers(link, channels).await?;
    Ok(counts.into_iter().filter(|(_, count)| *count == 0).map(|(channel, _)| channel).collect())
}

/// How many hear each of these channels. Those who hear it by a pattern are not counted.
pub(crate) async fn hearers(link: &Link, channels: &[String]) -> Result<HashMap<String, u64>, Failure> {
    let mut ask = redis::cmd("PUBSUB");
    ask.arg("NUMSUB").arg(channels);
    // Whoever hears must not wait for long for anything else.
    let answer: Value = within(link, link.ask(&ask)).await?;
    Ok(HashMap::from_redis_value(answer).map_err(RedisError::from)?)
}
