//! The connection on which the server tells what happens, and what it was asked to tell.

use crate::{
    error::{Failure, Fault},
    link::Link,
};
use futures_util::StreamExt;
use redis::{
    Msg, RedisError,
    aio::{PubSubSink, PubSubStream},
};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::timeout;

/// What a connection is to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subscriptions {
    pub(super) channels: BTreeSet<String>,
    pub(super) pattern: Option<String>,
}

impl Subscriptions {
    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.pattern.is_none()
    }
}

/// A connection that is subscribed.
pub(super) struct Ear {
    sink: PubSubSink,
    stream: PubSubStream,
    present: Subscriptions,
    patience: Duration,
}

impl Ear {
    pub(super) async fn open(link: &Link) -> Result<Self, Fault> {
        let (sink, stream) = link.ear().await?.split();
        let patience = link.config().response_timeout;
        Ok(Self { sink, stream, present: Subscriptions::default(), patience })
    }

    /// Subscribes and unsubscribes until it is as wanted. Returns when the server has confirmed it.
    pub(super) async fn become_as(&mut self, wanted: &Subscriptions) -> Result<(), Failure> {
        if self.present == *wanted {
            return Ok(());
        }
        let more: Vec<&String> = wanted.channels.difference(&self.present.channels).collect();
        let less: Vec<&String> = self.present.channels.difference(&wanted.channels).collect();
        if !more.is_empty() {
            within(self.patience, self.sink.subscribe(more)).await?;
        }
        if !less.is_empty() {
            within(self.patience, self.sink.unsubscribe(less)).await?;
        }
        if wanted.pattern != self.present.pattern {
            if let Some(pattern) = &wanted.pattern {
                within(self.patience, self.sink.psubscribe(pattern)).await?;
            }
            if let Some(pattern) = &self.present.pattern {
                within(self.patience, self.sink.punsubscribe(pattern)).await?;
            }
        }
        self.present = wanted.clone();
        Ok(())
    }

    /// Whether the other side still answers. A cut cable tells nothing by itself.
    pub(super) async fn answers(&mut self) -> Result<(), Failure> {
        within(self.patience, async { self.sink.ping::<redis::Value>().await.map(drop) }).await
    }

    /// The next message; `None` when the connection has ended. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Msg> {
        self.stream.next().await
    }
}

async fn within(limit: Duration, work: impl Future<Output = Result<(), RedisError>>) -> Result<(), Failure> {
    match timeout(limit, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Fault::Silence(limit).into()),
    }
}
