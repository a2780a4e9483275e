//! The connection of a lock, and the task that drives it.

use crate::wire::said;
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle};
use tokio_postgres::{Client, Config, Error, Socket, tls::MakeTlsConnect};

/// A connection that ends when this is dropped.
pub(super) struct Opened {
    pub(super) client: Client,
    /// The server's process.
    pub(super) backend: i32,
    driver: JoinHandle<()>,
    ended: watch::Receiver<Option<Arc<str>>>,
}

impl Opened {
    /// Connects.
    pub(super) async fn open<M>(config: &Config, tls: M) -> Result<Self, Error>
    where
        M: MakeTlsConnect<Socket>,
        M::Stream: Send + 'static,
    {
        let (client, connection) = config.connect(tls).await?;
        let (tell, ended) = watch::channel(None);
        let driver = tokio::spawn(async move {
            let why = match connection.await {
                Ok(()) => "it was closed".to_owned(),
                Err(error) => said(&error),
            };
            tell.send_replace(Some(why.into()));
        });
        let mut opened = Self { client, backend: 0, driver, ended };
        opened.backend = opened.backend().await?;
        Ok(opened)
    }

    /// The server's process that answers now.
    pub(super) async fn backend(&self) -> Result<i32, Error> {
        crate::pinned::backend(&self.client).await
    }

    /// Why the connection has ended, if it has.
    pub(super) fn ended(&self) -> Option<Arc<str>> {
        self.ended.borrow().clone()
    }

    /// Resolves when the connection has ended.
    pub(super) async fn end(&self) -> Arc<str> {
        let mut ended = self.ended.clone();
        let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| "its driver has ended".into())
    }

    /// Has the server keep this session, and only for as long as its host is there.
    pub(super) async fn settle(&self, silence: Duration) -> Result<(), Error> {
        let (whole, ms) = (silence.as_secs(), silence.as_millis());
        // The first question after half of the silence; without an answer to that and the next, the end.
        let interval = (whole / 4).max(1);
        let idle = whole - 2 * interval;
        self.client
            .batch_execute(&format!(
                "SET idle_session_timeout = 0; SET statement_timeout = 0; SET tcp_keepalives_idle = {idle};
                 SET tcp_keepalives_interval = {interval}; SET tcp_keepalives_count = 2; SET tcp_user_timeout = {ms}"
            ))
            .await?;
        // A session that waits for the lock would not notice that its client is gone. Not every system can look.
        let _ = self.client.batch_execute("SET client_connection_check_interval = 1000").await;
        Ok(())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
