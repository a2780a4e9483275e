//! The task that hears: it connects, subscribes, shows what it hears, and begins again when the connection ends.
//!
//! Three things fail apart from each other, and each is tried again by itself: the connection on which is heard, the
//! witness, and what is read over the [`Link`]. A lease or a letter that cannot be read costs nobody his witness.

use super::{
    Order,
    ear::{Ear, Subscriptions, is_end},
    inboxes::Inboxes,
    poll::Poll,
    watches::Watches,
};
use crate::{
    error::{Failure, Fault},
    link::Link,
    look,
    witness::{self, Presence, Seen, Witness},
};
use leasehold_core::{
    StoreErrorKind, Verb,
    backoff::{Retry, until},
};
use redis::Msg;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{MissedTickBehavior, interval},
};

/// How often what is connected is looked after.
const PULSE: Duration = Duration::from_secs(1);
/// How many orders are carried out together: they share their subscription and their reading.
const ORDERS: usize = 1_024;
/// Of how many leases the watchers are counted.
const CROWD: usize = 1_000;

struct Attendant {
    link: Link,
    presence: Arc<Presence>,
    ear: Option<Ear>,
    /// Whether the ear is perhaps subscribed to other things than are wanted.
    is_changed: bool,
    /// Whether a subscription was refused: what came before it is granted was missed.
    is_behind: bool,
    watches: Watches,
    inboxes: Inboxes,
    witness: Witness,
    poll: Poll,
    retry: Retry,
}

/// What became of an attempt to have everything as it should be.
struct Settled {
    witnessed: Result<(), Failure>,
    watched: Result<(), Failure>,
    fetched: Result<(), Failure>,
}

/// Runs until the orders end.
pub(super) async fn attend(link: Link, presence: Arc<Presence>, mut orders: UnboundedReceiver<Order>) {
    let mut pulse = interval(PULSE);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let poll = Poll::new(link.config().witness_poll);
    let mut attendant = Attendant {
        link,
        presence,
        ear: None,
        is_changed: false,
        is_behind: false,
        watches: Watches::default(),
        inboxes: Inboxes::default(),
        witness: Witness::default(),
        poll,
        retry: Retry::new(),
    };
    let mut batch = Vec::new();
    loop {
        let is_connected = attendant.ear.is_some() || attendant.witness.is_connected();
        let polls = attendant.ear.is_some() && attendant.strangers().next().is_some();
        let (due, poll_due) = (attendant.retry.due(), polls.then(|| attendant.poll.due()));
        let Attendant { ear, witness, .. } = &mut attendant;
        tokio::select! {
            taken = orders.recv_many(&mut batch, ORDERS) => match taken {
                0 => return,
                _ => attendant.obey(batch.drain(..)).await,
            },
            message = hear(ear) => attendant.heard(message).await,
            () = witness.broken() => attendant.unwitnessed(),
            () = until(due) => drop(attendant.settle().await),
            _ = pulse.tick(), if is_connected => attendant.pulse().await,
            () = until(poll_due) => attendant.poll().await,
        }
    }
}

async fn hear(ear: &mut Option<Ear>) -> Option<Msg> {
    match ear {
        Some(ear) => ear.next().await,
        None => std::future::pending().await,
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.presence.set_seen(Seen::Nowhere);
    }
}

impl Attendant {
    async fn obey(&mut self, orders: impl Iterator<Item = Order>) {
        let (mut watchers, mut readers, mut holders) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_missed = false;
        for order in orders {
            match order {
                Order::Watch(scope, answer) => watchers.push((answer, self.watches.add(scope))),
                Order::Open(me, answer) => {
                    let channel = self.link.keys().mail(&me);
                    readers.push((answer, me.clone(), self.inboxes.open(me, channel)));
                }
                Order::Witness(slot, answer) => holders.push((slot, answer)),
                Order::Rewitness => is_missed = true,
            }
        }
        self.is_changed |= !watchers.is_empty() || !readers.is_empty();
        if is_missed || !holders.is_empty() {
            self.presence.want();
        }
        if is_missed {
            self.look_for_witness().await;
        }
        let Settled { witnessed, watched, fetched } = self.settle().await;
        // Whoever does not wait any more drops what was opened for him, and it is swept.
        for (slot, answer) in holders {
            // A primary that does not see it is no matter of those whose leases are elsewhere.
            let seen = if self.presence.is_seen(slot) { Ok(()) } else { witnessed.clone() };
            answer.send(seen).ok();
        }
        for (answer, watch) in watchers {
            answer.send(watched.clone().map(|()| watch)).ok();
        }
        for (answer, me, inbox) in readers {
            let fetched = fetched.clone().and_then(|()| self.inboxes.state_of(&me));
            answer.send(fetched.map(|()| inbox)).ok();
        }
    }

    /// Has everything as it should be: connected, subscribed, read. What fails is tried again later.
    async fn settle(&mut self) -> Settled {
        self.is_changed |= self.watches.sweep() | self.watches.follow() | self.inboxes.sweep();
        let listening = self.listen().await;
        // Before the rest: nothing is as urgent, and a channel that we have no right to must not cost it.
        let witnessed = self.testify(listening.clone()).await;
        let subscribed = match listening {
            Ok(()) => self.subscribe().await,
            failed => failed,
        };
        let (watched, fetched) = match subscribed {
            Ok(()) => self.read().await,
            Err(failure) => {
                self.tell(failure.fault.clone());
                (Err(failure.clone()), Err(failure))
            }
        };
        let settled = Settled { witnessed, watched, fetched };
        if settled.is_whole() {
            self.retry.done();
        } else {
            self.retry.failed();
        }
        settled
    }

    /// Connects the ear, if there is something to hear.
    async fn listen(&mut self) -> Result<(), Failure> {
        let is_witness = self.presence.is_wanted() && !self.link.is_sharded();
        if !is_witness && self.watches.is_empty() && self.inboxes.is_empty() {
            self.ear = None;
        } else if self.ear.is_none() {
            self.ear = Some(Ear::open(&self.link, self.presence.nonce()).await?);
            self.is_changed = true;
            self.doubt_all();
        }
        Ok(())
    }

    /// Nobody knows what was missed.
    fn doubt_all(&mut self) {
        self.watches.doubt_all();
        self.inboxes.ring_all();
    }

    /// Has the server see the witness.
    async fn testify(&mut self, listening: Result<(), Failure>) -> Result<(), Failure> {
        if !self.presence.is_wanted() {
            return Ok(());
        }
        if self.link.is_sharded() {
            let done = self.witness.connect(&self.link, self.presence.channel()).await;
            self.presence.set_seen(self.witness.seen());
            return done;
        }
        let done = match (listening, &mut self.ear) {
            (Ok(()), Some(ear)) => ear.keep(self.presence.channel()).await,
            (listening, _) => listening,
        };
        self.drop_broken(&done);
        self.presence.set_seen(if done.is_ok() { Seen::Everywhere } else { Seen::Nowhere });
        done
    }

    /// Has the ear subscribed to what is wanted, and to nothing else.
    async fn subscribe(&mut self) -> Result<(), Failure> {
        let Some(ear) = self.ear.as_mut().filter(|_| self.is_changed) else { return Ok(()) };
        let mut wanted = Subscriptions::default();
        wanted.channels.extend(self.inboxes.channels().cloned());
        self.watches.subscribe(&self.link, &mut wanted);
        let done = ear.become_as(&wanted).await;
        self.is_changed = done.is_err();
        if std::mem::replace(&mut self.is_behind, done.is_err()) {
            self.doubt_all();
        }
        self.drop_broken(&done);
        done
    }

    fn drop_broken(&mut self, done: &Result<(), Failure>) {
        if done.as_ref().is_err_and(is_end) {
            self.ear = None;
            if !self.link.is_sharded() {
                self.presence.set_seen(Seen::Nowhere);
            }
        }
    }

    /// Reads the leases and the letters that must be read.
    async fn read(&mut self) -> (Result<(), Failure>, Result<(), Failure>) {
        let (watched, fetched) = (self.watches.read(&self.link).await, self.inboxes.read(&self.link).await);
        if let Err(failure) = &watched {
            self.tell(failure.fault.clone());
        }
        if watched.is_err() || fetched.is_err() {
            self.retry.failed();
        }
        (watched, fetched)
    }

    async fn heard(&mut self, message: Option<Msg>) {
        if message.is_none() {
            return self.lost(Fault::from(StoreErrorKind::Unreachable));
        }
        // All that is here already, so that it is read for all of it together, if at all.
        let mut next = message;
        while let Some(message) = next {
            let channel = message.get_channel_name();
            match self.link.keys().lease_of(channel.as_bytes(), ":events") {
                Some(name) => self.watches.heard(&self.link, &name, message.get_payload_bytes()),
                None => self.inboxes.ring(channel),
            }
            next = self.ear.as_mut().and_then(Ear::ready);
        }
        drop(self.read().await);
    }

    /// Looks after what is connected. A cut cable tells nothing by itself.
    async fn pulse(&mut self) {
        let mut done = Ok(());
        if let Some(ear) = &mut self.ear {
            done = ear.pulse(&self.link).await;
        }
        if self.witness.is_connected() && !self.witness.check(&self.link).await {
            self.presence.set_seen(self.witness.seen());
        }
        let was_well = done.is_ok();
        if let Err(failure) = done {
            self.lost(failure.fault);
        }
        self.watches.doubt_damaged();
        self.count_watchers().await;
        if self.settle().await.is_whole() && was_well {
            self.retry.lasted();
        }
    }

    /// The witnesses of others.
    fn strangers(&self) -> impl Iterator<Item = &String> {
        self.watches.witnesses().filter(|channel| *channel != self.presence.channel())
    }

    /// Asks whether the holders that are watched still live.
    async fn poll(&mut self) {
        let strangers: Vec<String> = self.strangers().cloned().collect();
        let silent = witness::silent(&self.link, &strangers).await;
        self.poll.asked();
        match silent {
            Ok(silent) if silent.is_empty() => return,
            Ok(silent) => {
                look::tell_crashes(&self.link, &self.watches.held_by(&silent)).await;
                self.watches.doubt_holders(&silent);
            }
            // One node of a Cluster that does not answer hides no crash from the others.
            Err(_) if self.link.is_sharded() => self.watches.doubt_holders(&strangers),
            Err(_) => return,
        }
        drop(self.read().await);
    }

    /// Finds out with how many others the polls are shared. The lease that fewest watch counts.
    async fn count_watchers(&mut self) {
        let held = self.watches.held_by(self.strangers());
        let channels: Vec<String> =
            held.iter().take(CROWD).map(|name| self.link.keys().events(name)).collect();
        if self.ear.is_some()
            && !channels.is_empty()
            && let Ok(counts) = witness::hearers(&self.link, &channels).await
        {
            self.poll.watched_by(counts.into_values().min().unwrap_or(1));
        }
    }

    /// A renewal was answered that the server does not see the witness. That may have been before it was connected last:
    /// a witness that is seen now must not be disconnected for it.
    async fn look_for_witness(&mut self) {
        if self.link.is_sharded() {
            // Each primary counts for itself. The new connections are made before the old ones end.
            self.witness.doubt();
        } else if self.ear.is_some() {
            let mine = [self.presence.channel().to_owned()];
            if witness::silent(&self.link, &mine).await.is_ok_and(|silent| !silent.is_empty()) {
                self.lost(Fault::from(StoreErrorKind::Unwitnessed));
            }
        }
    }

    /// The witness is not seen by one of the primaries any more.
    fn unwitnessed(&mut self) {
        self.presence.set_seen(self.witness.seen());
        self.retry.lost(true);
    }

    /// The ear has ended, or is to.
    fn lost(&mut self, fault: Fault) {
        self.ear = None;
        if !self.link.is_sharded() {
            self.presence.set_seen(Seen::Nowhere);
        }
        self.tell(fault);
        // A witness that is missed for long costs the lease. News may be a little late.
        self.retry.lost(self.presence.is_wanted() && !self.link.is_sharded());
    }

    /// Tells whoever watches that there is trouble.
    fn tell(&self, fault: Fault) {
        self.watches.trouble(&fault.told(self.link.address(), Verb::Watch, None));
    }
}

impl Settled {
    const fn is_whole(&self) -> bool {
        self.witnessed.is_ok() && self.watched.is_ok() && self.fetched.is_ok()
    }
}
