//! The connection on which the server tells what happens, and what it was asked to tell.

use crate::{
    error::{Failure, Fault, Verdict, verdict},
    link::Link,
};
use futures_util::{FutureExt, StreamExt};
use leasehold_core::StoreErrorKind;
use redis::{
    Msg, RedisError,
    aio::{PubSubSink, PubSubStream},
};
use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};
use tokio::time::timeout;

/// How many channels go into one request: a server does nothing else meanwhile.
const PORTION: usize = 1_000;

/// What a connection is to tell of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subscriptions {
    pub(super) channels: BTreeSet<String>,
    pub(super) pattern: Option<String>,
}

/// A connection that is subscribed.
pub(super) struct Ear {
    sink: PubSubSink,
    stream: PubSubStream,
    /// Messages that came while something else was waited for.
    early: VecDeque<Msg>,
    present: Subscriptions,
    /// Channels that are ours alone: they stay as long as the connection.
    own: BTreeSet<String>,
    echo: (String, Echo),
    patience: Duration,
}

/// What a process says to itself. A server may answer and yet tell nothing: one that has left its Cluster, or that is not
/// in charge any more while the requests go to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    /// We have no right to its channel.
    Off,
    /// To be said.
    Due,
    /// It was said, and not heard yet.
    Awaited,
    Heard,
}

impl Ear {
    /// Connects. `nonce` names the channel on which the process speaks to itself.
    pub(super) async fn open(link: &Link, nonce: &str) -> Result<Self, Failure> {
        let (sink, stream) = link.ear().await?.split();
        let mut ear = Self {
            sink,
            stream,
            early: VecDeque::new(),
            present: Subscriptions::default(),
            own: BTreeSet::new(),
            echo: (link.keys().echo(nonce), Echo::Due),
            patience: link.config().response_timeout,
        };
        match ear.keep(&ear.echo.0.clone()).await {
            Err(failure) if is_end(&failure) => return Err(failure),
            Err(failure) => {
                tracing::debug!(error = %failure.fault, "no echo: what the server stops to tell is not noticed");
                ear.echo.1 = Echo::Off;
            }
            Ok(()) => {}
        }
        Ok(ear)
    }

    /// Subscribes a channel that is ours alone. Returns when the server has confirmed it.
    pub(super) async fn keep(&mut self, channel: &str) -> Result<(), Failure> {
        if !self.own.contains(channel) {
            within(self.patience, self.sink.subscribe(channel)).await?;
            self.own.insert(channel.to_owned());
        }
        Ok(())
    }

    /// Subscribes and unsubscribes until it is as wanted. Returns when the server has confirmed it. At no time less is
    /// subscribed than before and after.
    pub(super) async fn become_as(&mut self, wanted: &Subscriptions) -> Result<(), Failure> {
        let more: Vec<String> = wanted.channels.difference(&self.present.channels).cloned().collect();
        for portion in more.chunks(PORTION) {
            within(self.patience, self.sink.subscribe(portion)).await?;
            self.present.channels.extend(portion.iter().cloned());
        }
        if wanted.pattern != self.present.pattern {
            if let Some(pattern) = &wanted.pattern {
                within(self.patience, self.sink.psubscribe(pattern)).await?;
            }
            if let Some(pattern) = self.present.pattern.take() {
                within(self.patience, self.sink.punsubscribe(pattern)).await?;
            }
            self.present.pattern.clone_from(&wanted.pattern);
        }
        let less: Vec<String> = self.present.channels.difference(&wanted.channels).cloned().collect();
        for portion in less.chunks(PORTION) {
            within(self.patience, self.sink.unsubscribe(portion)).await?;
            portion.iter().for_each(|channel| _ = self.present.channels.remove(channel));
        }
        Ok(())
    }

    /// Finds out whether the other side still answers, and whether it tells what is said: at every other time something
    /// is said that must be heard by the next. A failure is the end of it.
    pub(super) async fn pulse(&mut self, link: &Link) -> Result<(), Failure> {
        match self.echo.1 {
            Echo::Heard => self.echo.1 = Echo::Due,
            Echo::Due => {
                let said =
                    timeout(self.patience, link.ask(redis::cmd("PUBLISH").arg(&self.echo.0).arg(""))).await;
                match said {
                    Ok(Ok(_)) => self.echo.1 = Echo::Awaited,
                    // It could not be said, for which this connection need not be to blame.
                    Ok(Err(_)) | Err(_) => self.answers().await?,
                }
            }
            Echo::Off => self.answers().await?,
            Echo::Awaited => {
                self.answers().await?;
                // What was told before the answer is here by now, also if we were asleep for all that time.
                while let Some(message) = self.arrived() {
                    self.early.push_back(message);
                }
                if self.echo.1 == Echo::Awaited {
                    return Err(Fault::from(StoreErrorKind::Unreachable).into());
                }
            }
        }
        Ok(())
    }

    async fn answers(&mut self) -> Result<(), Failure> {
        within(self.patience, async { self.sink.ping::<redis::Value>().await.map(drop) }).await
    }

    /// The next message; `None` when the connection has ended. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Msg> {
        loop {
            let message = match self.early.pop_front() {
                Some(message) => return Some(message),
                None => self.stream.next().await?,
            };
            if self.is_news(&message) {
                return Some(message);
            }
        }
    }

    /// The next message that is here already.
    pub(super) fn ready(&mut self) -> Option<Msg> {
        self.early.pop_front().or_else(|| self.arrived())
    }

    fn arrived(&mut self) -> Option<Msg> {
        loop {
            let message = self.stream.next().now_or_never().flatten()?;
            if self.is_news(&message) {
                return Some(message);
            }
        }
    }

    /// Whether a message says anything to others: it is not the echo, and does not come by the pattern as well as by its
    /// channel.
    fn is_news(&mut self, message: &Msg) -> bool {
        let channel = message.get_channel_name();
        if channel == self.echo.0 {
            self.echo.1 = Echo::Heard;
            return false;
        }
        let is_repeated = self.present.channels.contains(channel) || self.own.contains(channel);
        !(message.from_pattern() && is_repeated)
    }
}

/// Whether a failure on a connection is its end. What the server refuses is not.
pub(super) fn is_end(failure: &Failure) -> bool {
    match &failure.fault {
        Fault::Redis(error) => error.code().is_none() || verdict(error) == Verdict::GiveUp,
        Fault::Silence(_) | Fault::Known(_) => true,
    }
}

async fn within(limit: Duration, work: impl Future<Output = Result<(), RedisError>>) -> Result<(), Failure> {
    match timeout(limit, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Fault::Silence(limit).into()),
    }
}
