//! A connection of our own.

use anyhow::{Context as _, Result};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::trial::until;

/// A session that nobody else uses.
pub(crate) struct Session {
    client: Client,
}

impl Session {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        drop(tokio::spawn(connection));
        Ok(Self { client })
    }

    pub(crate) async fn ask(&self, statement: &str) -> Result<bool> {
        said_yes(&self.client.simple_query(statement).await?)
    }

    /// Whether any session has the lock. Looking does not take it.
    pub(crate) async fn sees_lock(&self) -> Result<bool> {
        self.ask("SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711").await
    }

    pub(crate) async fn until_free(&self) -> Result<()> {
        until(|| async { Ok(!self.sees_lock().await?) }).await.context("the lock was never free")
    }
}

/// The single value of an answer.
pub(crate) fn said_yes(answer: &[SimpleQueryMessage]) -> Result<bool> {
    let value = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(value.context("an answer")? == "t")
}
