//! The task that hears: it connects, listens, shows what it hears, and begins again when the connection ends.
//!
//! Three things fail apart from each other, and each is tried again by itself: the connection on which is heard, the
//! witness, and what is read over the [`Link`]. A lease or a letter that cannot be read costs nobody his witness.

use super::{Order, ear::Ear, inboxes::Inboxes, watches::Watches};
use crate::{
    error::{Failure, Fault},
    link::Link,
    witness::{self, Presence},
};
use leasehold_core::{
    LeaseName, StoreErrorKind, Verb,
    backoff::{Retry, until},
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{MissedTickBehavior, interval},
};
use tokio_postgres::Notification;

/// How often what is connected is looked after.
const PULSE: Duration = Duration::from_secs(1);
/// How many orders are carried out together: they share their subscription and their reading.
const ORDERS: usize = 1_024;

struct Attendant {
    link: Link,
    presence: Arc<Presence>,
    ear: Option<Ear>,
    /// Whether the ear perhaps listens to other things than are wanted.
    is_changed: bool,
    watches: Watches,
    inboxes: Inboxes,
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
    let mut poll = interval(link.config().witness_poll);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut attendant = Attendant {
        link,
        presence,
        ear: None,
        is_changed: false,
        watches: Watches::default(),
        inboxes: Inboxes::default(),
        retry: Retry::new(),
    };
    let mut batch = Vec::new();
    loop {
        let is_connected = attendant.ear.is_some();
        let polls = is_connected && attendant.strangers().next().is_some();
        let due = attendant.retry.due();
        tokio::select! {
            taken = orders.recv_many(&mut batch, ORDERS) => match taken {
                0 => return,
                _ => attendant.obey(batch.drain(..)).await,
            },
            news = hear(&mut attendant.ear) => attendant.heard(news).await,
            () = until(due) => drop(attendant.settle().await),
            _ = pulse.tick(), if is_connected => attendant.pulse().await,
            _ = poll.tick(), if polls => attendant.poll().await,
        }
    }
}

async fn hear(ear: &mut Option<Ear>) -> Option<Notification> {
    match ear {
        Some(ear) => ear.next().await,
        None => std::future::pending().await,
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.presence.set_seen(false);
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
                    let channel = self.link.texts().channel("mail", me.as_str());
                    readers.push((answer, self.inboxes.open(me, channel)));
                }
                Order::Witness(answer) => holders.push(answer),
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
        for answer in holders {
            answer.send(witnessed.clone()).ok();
        }
        for (answer, watch) in watchers {
            answer.send(watched.clone().map(|()| watch)).ok();
        }
        for (answer, inbox) in readers {
            answer.send(fetched.clone().map(|()| inbox)).ok();
        }
    }

    /// Has everything as it should be: connected, listening, read. What fails is tried again later.
    async fn settle(&mut self) -> Settled {
        self.is_changed |= self.watches.sweep() | self.watches.follow() | self.inboxes.sweep();
        let connected = self.connect().await;
        // Before the rest: nothing is as urgent.
        let witnessed = match connected.clone() {
            Ok(()) => self.testify().await,
            failed => failed,
        };
        let listening = match connected {
            Ok(()) => self.listen().await,
            failed => failed,
        };
        let (watched, fetched) = match listening {
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
    async fn connect(&mut self) -> Result<(), Failure> {
        if !self.presence.is_wanted() && self.watches.is_empty() && self.inboxes.is_empty() {
            self.ear = None;
        } else if self.ear.is_none() {
            self.ear = Some(Ear::open(&self.link).await?);
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
    async fn testify(&mut self) -> Result<(), Failure> {
        let Some(ear) = self.ear.as_mut().filter(|_| self.presence.is_wanted()) else { return Ok(()) };
        let done = ear.testify(&self.link, self.presence.key()).await;
        self.presence.set_seen(done.is_ok());
        self.drop_broken(&done);
        done
    }

    /// Has the ear listen to what is wanted, and to nothing else.
    async fn listen(&mut self) -> Result<(), Failure> {
        let Some(ear) = self.ear.as_mut().filter(|_| self.is_changed) else { return Ok(()) };
        let mut wanted = BTreeSet::new();
        wanted.extend(self.inboxes.channels().cloned());
        self.watches.subscribe(self.link.texts(), &mut wanted);
        let done = ear.become_as(self.link.texts(), &wanted).await;
        self.is_changed = done.is_err();
        self.drop_broken(&done);
        done
    }

    fn drop_broken(&mut self, done: &Result<(), Failure>) {
        if done.as_ref().is_err_and(Failure::is_end) {
            self.ear = None;
            self.presence.set_seen(false);
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

    async fn heard(&mut self, news: Option<Notification>) {
        if news.is_none() {
            return self.lost(Fault::from(StoreErrorKind::Unreachable));
        }
        // All that is here already, so that it is read for all of it together.
        let mut next = news;
        while let Some(notification) = next {
            match LeaseName::new(notification.payload()) {
                Ok(name) => self.watches.heard(name),
                // No lease is told: there is a letter.
                Err(_) => self.inboxes.ring(notification.channel()),
            }
            next = self.ear.as_mut().and_then(Ear::ready);
        }
        drop(self.read().await);
    }

    /// Looks after what is connected. A cut cable tells nothing by itself.
    async fn pulse(&mut self) {
        let Some(ear) = &mut self.ear else { return };
        let done = ear.pulse().await;
        let is_deaf = ear.is_pooled();
        let was_well = done.is_ok();
        if let Err(failure) = done {
            self.lost(failure.fault);
        }
        if is_deaf {
            self.doubt_all();
        }
        self.watches.doubt_damaged();
        if self.settle().await.is_whole() && was_well {
            self.retry.lasted();
        }
    }

    /// The witnesses of others.
    fn strangers(&self) -> impl Iterator<Item = i64> {
        self.watches.witnesses().filter(|key| *key != self.presence.key())
    }

    /// Asks whether the holders that are watched still live.
    async fn poll(&mut self) {
        let strangers: Vec<i64> = self.strangers().collect();
        if let Ok(silent) = witness::silent(&self.link, &strangers).await
            && !silent.is_empty()
        {
            self.watches.doubt_holders(silent);
            drop(self.read().await);
        }
    }

    /// A renewal was answered that nobody holds the witness. That may have been before it was connected last: a witness
    /// that is seen now must not be disconnected for it.
    async fn look_for_witness(&mut self) {
        let mine = [self.presence.key()];
        if self.ear.is_some()
            && witness::silent(&self.link, &mine).await.is_ok_and(|silent| !silent.is_empty())
        {
            self.lost(Fault::from(StoreErrorKind::Unwitnessed));
        }
    }

    /// The ear has ended, or is to.
    fn lost(&mut self, fault: Fault) {
        self.ear = None;
        self.presence.set_seen(false);
        self.tell(fault);
        // A witness that is missed for long costs the lease. News may be a little late.
        self.retry.lost(self.presence.is_wanted());
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
