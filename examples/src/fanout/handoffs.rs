//! Asking leaders to hand over, from outside: by letter, through the store, as `leasehold handoff` does.

use super::leader::LEASE;
use crate::store;
use leasehold::{
    BoxError, HandoffId, Inbox, ReplicaId, SharedStore, To, TraceContext,
    leasehold_core::handoff::request::{self, News, Outcome, Request},
};
use std::time::Duration;
use tokio::time::timeout;

/// How long a leader may take to find a successor and to finish.
const WITHIN: Duration = Duration::from_secs(10);

/// Somebody who asks leaders to hand over.
#[derive(Debug)]
pub struct Asker {
    store: SharedStore,
    me: ReplicaId,
    inbox: Inbox,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Handed {
    /// Who led.
    pub from: String,
    /// Whether somebody else leads now.
    pub done: bool,
    /// In words.
    pub what: String,
    /// How long nobody led, as the protocol measures it.
    pub gap: Option<Duration>,
}

impl Asker {
    /// Opens the store, and an inbox for the answers.
    ///
    /// # Errors
    /// Of the store.
    pub async fn open(url: &str) -> Result<Self, BoxError> {
        let store = store::open(url).await?;
        let me = ReplicaId::generate();
        let inbox = store.inbox(&me).await?;
        Ok(Self { store, me, inbox })
    }

    /// Asks `leader` to hand over to whoever is ready, and waits for the end of it.
    ///
    /// # Errors
    /// Of the store, and when no answer comes within `patience`.
    pub async fn ask(&mut self, leader: &str, patience: Duration) -> Result<Handed, BoxError> {
        let request = Request {
            id: HandoffId::random(),
            lease: LEASE.try_into()?,
            to: To::Anyone,
            within: WITHIN,
            reason: "the play wants it".into(),
            trace: TraceContext::NONE,
        };
        self.store.post(&leader.try_into()?, &request::seal(&request, &self.me)).await?;
        let news = timeout(patience, self.last_news(request.id)).await;
        let news = news.map_err(|_| format!("{leader} did not say what became of a handoff"))??;
        Ok(Handed {
            from: leader.to_owned(),
            done: news.outcome() == Some(Outcome::Done),
            what: format!("{}{}", news.step, news.why.map(|why| format!(": {why}")).unwrap_or_default()),
            gap: news.gap_us.map(Duration::from_micros),
        })
    }

    async fn last_news(&mut self, id: HandoffId) -> Result<News, BoxError> {
        while let Some(letter) = self.inbox.next().await {
            if let Ok(news) = request::open_news(&letter)
                && news.handoff == id.to_string()
                && news.outcome().is_some()
            {
                return Ok(news);
            }
        }
        Err("the store was closed".into())
    }
}
