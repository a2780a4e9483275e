//! The task that hears: it connects, subscribes, shows what it hears, and begins again when the connection ends.

use super::{
    Order,
    ear::{Ear, Subscriptions},
    inboxes::Inboxes,
    watches::Watches,
};
use crate::{
    error::{Failure, Fault},
    link::Link,
    witness::{self, Witness},
};
use leasehold_core::{StoreErrorKind, Verb, backoff::Backoff};
use redis::Msg;
use std::time::Duration;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

/// How often the connection is asked whether it is one.
const PULSE: Duration = Duration::from_secs(2);
/// The first and the longest pause between two attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

struct Attendant {
    link: Link,
    ear: Option<Ear>,
    watches: Watches,
    inboxes: Inboxes,
    witness: Witness,
    backoff: Backoff,
    /// When to connect next, while there is no ear and something to hear.
    next: Instant,
}

/// Runs until the orders end.
pub(super) async fn attend(link: Link, mut orders: UnboundedReceiver<Order>) {
    let seed = u64::from(std::process::id());
    let mut attendant = Attendant {
        witness: Witness::new(&link),
        ear: None,
        watches: Watches::default(),
        inboxes: Inboxes::default(),
        backoff: Backoff::new(PAUSES.0, PAUSES.1, seed),
        next: now(),
        link,
    };
    let mut pulse = interval(PULSE);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut poll = interval(attendant.link.config().witness_poll);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let has_ear = attendant.ear.is_some();
        let reconnects = !has_ear && !attendant.wanted().is_empty();
        let polls = has_ear && !attendant.watches.witnesses().is_empty();
        let next = attendant.next;
        let Attendant { ear, witness, .. } = &mut attendant;
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => attendant.obey(order).await,
                None => return,
            },
            message = hear(ear), if has_ear => attendant.heard(message).await,
            () = witness.broken() => attendant.lost(Fault::from(StoreErrorKind::Unreachable)),
            () = sleep_until(next), if reconnects => attendant.reconnect().await,
            _ = pulse.tick(), if has_ear => attendant.check().await,
            _ = poll.tick(), if polls => attendant.poll().await,
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "when to try again, not how long a lease lives")]
fn now() -> Instant {
    Instant::now()
}

async fn hear(ear: &mut Option<Ear>) -> Option<Msg> {
    match ear {
        Some(ear) => ear.next().await,
        None => std::future::pending().await,
    }
}

impl Attendant {
    fn wanted(&self) -> Subscriptions {
        let mut wanted = Subscriptions::default();
        wanted.channels.extend(self.inboxes.channels(&self.link));
        if self.witness.is_wanted() && !self.link.is_sharded() {
            wanted.channels.insert(self.witness.channel().to_owned());
        }
        self.watches.subscribe(&self.link, &mut wanted);
        wanted
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Watch(scope, answer) => {
                let watch = self.watches.add(scope);
                let done = match self.settle().await {
                    Ok(()) => self.watches.read(&self.link, true).await,
                    failed => failed,
                };
                drop(answer.send(self.noted(done).map(|()| watch)));
            }
            Order::Open(me, answer) => {
                let inbox = self.inboxes.open(me);
                let done = match self.settle().await {
                    Ok(()) => self.inboxes.fetch_all(&self.link).await,
                    failed => failed,
                };
                drop(answer.send(self.noted(done).map(|()| inbox)));
            }
            Order::Witness(answer) => {
                self.witness.want();
                let done = self.settle().await;
                let channel = self.witness.channel().to_owned();
                drop(answer.send(self.noted(done).map(|()| channel)));
            }
            Order::Rewitness => {
                // What the server does not see is none, whatever we believe of it.
                self.lost(Fault::from(StoreErrorKind::Unwitnessed));
                self.reconnect().await;
            }
        }
    }

    /// Connects if there is something to hear, and subscribes to just that.
    async fn settle(&mut self) -> Result<(), Failure> {
        self.watches.sweep();
        self.inboxes.sweep();
        let wanted = self.wanted();
        self.witness.connect(&self.link).await?;
        if wanted.is_empty() {
            self.ear = None;
            return Ok(());
        }
        if self.ear.is_none() {
            self.ear = Some(Ear::open(&self.link).await?);
        }
        match &mut self.ear {
            Some(ear) => ear.become_as(&wanted).await,
            None => Ok(()),
        }
    }

    /// A new connection: whatever happened meanwhile is read.
    async fn reconnect(&mut self) {
        let done = async {
            self.settle().await?;
            self.watches.read(&self.link, false).await?;
            self.inboxes.fetch_all(&self.link).await
        }
        .await;
        if self.noted(done).is_ok() {
            self.backoff.reset();
        }
    }

    async fn heard(&mut self, message: Option<Msg>) {
        let Some(message) = message else {
            return self.lost(Fault::from(StoreErrorKind::Unreachable));
        };
        let channel = message.get_channel_name();
        let done = match self.link.keys().lease_of(channel.as_bytes(), ":events") {
            Some(name) => self.watches.heard(&self.link, &name, message.get_payload_bytes()).await,
            None => self.inboxes.fetch(&self.link, channel).await.map(drop),
        };
        drop(self.noted(done));
    }

    async fn check(&mut self) {
        let mut done = self.settle().await;
        if let (Ok(()), Some(ear)) = (&done, &mut self.ear) {
            done = ear.answers().await;
        }
        drop(self.noted(done));
    }

    /// Asks whether the holders that are watched still live.
    async fn poll(&mut self) {
        let done = if self.link.is_sharded() {
            self.watches.look_at_witnessed(&self.link, None).await
        } else {
            match witness::silent(&self.link, &self.watches.witnesses()).await {
                Ok(silent) if silent.is_empty() => Ok(()),
                Ok(silent) => self.watches.look_at_witnessed(&self.link, Some(&silent)).await,
                Err(failure) => Err(failure),
            }
        };
        drop(self.noted(done));
    }

    /// A failure is the loss of the connection: nobody knows what was missed.
    fn noted(&mut self, done: Result<(), Failure>) -> Result<(), Failure> {
        if let Err(failure) = &done {
            self.lost(failure.fault.clone());
        }
        done
    }

    fn lost(&mut self, fault: Fault) {
        self.ear = None;
        self.witness.disconnect();
        let first = self.backoff.next_delay();
        // The first attempt is at once: a witness that is missed for long costs the lease.
        self.next = if first <= PAUSES.0 { now() } else { now() + first };
        if !self.watches.is_empty() {
            self.watches.trouble(&fault.told(self.link.address(), Verb::Watch, None));
        }
    }
}
