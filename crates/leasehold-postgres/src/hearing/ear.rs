//! The connection on which the server tells what happens, and what it was asked to tell.

use crate::{
    error::{Failure, Fault},
    link::{Again, Link, connect, drive},
    pinned::pinned,
    texts::Texts,
};
use leasehold_core::StoreErrorKind;
use std::{collections::BTreeSet, future::poll_fn, time::Duration};
use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::{AsyncMessage, Client, Notification, Row};

/// How many channels go into one request.
const PORTION: usize = 500;

/// The longest wait for a session of the server, while it is looked whether a pooler stands before it.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// What tells which of the server's processes a connection has.
const WHO: &str = "SELECT pg_backend_pid()";

/// A connection that listens.
pub(super) struct Ear {
    client: Client,
    news: mpsc::UnboundedReceiver<Notification>,
    present: BTreeSet<String>,
    /// The locks that are held for them: see [`Texts::ears_of`].
    locks: BTreeSet<i64>,
    /// The server's process behind it.
    backend: i32,
    /// Whether a pooler gives it another process for each transaction: then it hears nothing for long, and holds no lock.
    is_pooled: bool,
    witness: Option<i64>,
    patience: Duration,
}

impl Ear {
    pub(super) async fn open(link: &Link) -> Result<Self, Failure> {
        let (client, mut connection) = connect(link.config()).await?;
        let (tell, news) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            loop {
                match poll_fn(|cx| connection.poll_message(cx)).await {
                    Some(Ok(AsyncMessage::Notification(notification))) => _ = tell.send(notification),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        tracing::debug!(error = %Fault::from(error), "the listening connection ended");
                        return;
                    }
                    None => return,
                }
            }
        });
        let patience = link.config().response_timeout;
        let mut ear = Self {
            client,
            news,
            present: BTreeSet::new(),
            locks: BTreeSet::new(),
            backend: 0,
            is_pooled: false,
            witness: None,
            patience,
        };
        ear.backend = ear.who().await?;
        ear.is_pooled = !ear.is_pinned(link).await?;
        if ear.is_pooled {
            tracing::warn!(store = %link.address(), "{}", POOLED);
        }
        Ok(ear)
    }

    /// Whether this connection is one session of the server. For a moment there is a second connection, to find that out;
    /// where there is no room for it, what can be seen without is taken.
    async fn is_pinned(&self, link: &Link) -> Result<bool, Failure> {
        let Ok((other, connection)) = connect(link.config()).await else {
            return Ok(self.who().await? == self.backend);
        };
        let driver = tokio::spawn(drive(connection));
        let looked = pinned(&self.client, self.backend, &other, self.patience.min(LONGEST_LOOK)).await;
        drop(other);
        driver.await.ok();
        Ok(looked?)
    }

    async fn who(&self) -> Result<i32, Failure> {
        let rows = self.ask(WHO).await?;
        let who = rows.first().and_then(|row| row.try_get(0).ok());
        who.ok_or_else(|| Fault::from(StoreErrorKind::Other).into())
    }

    /// One statement without values.
    async fn ask(&self, sql: &str) -> Result<Vec<Row>, Failure> {
        match timeout(self.patience, self.client.query_typed(sql, &[])).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure::silence(self.patience)),
        }
    }

    async fn run(&self, sql: &str) -> Result<(), Failure> {
        match timeout(self.patience, self.client.batch_execute(sql)).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure::silence(self.patience)),
        }
    }

    /// Whether news may stay untold.
    pub(super) const fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// Takes the lock that is this process's witness, once a connection. What an earlier connection of ours still holds,
    /// of whose end the server has not heard, is ended: the lock then falls to us, and to nobody in between.
    pub(super) async fn testify(&mut self, link: &Link, key: i64) -> Result<(), Failure> {
        if self.is_pooled {
            return Err(StoreErrorKind::Config(POOLED.into()).into());
        }
        if self.witness.is_some() {
            return Ok(());
        }
        let lock = async { self.ask(&format!("SELECT pg_advisory_lock({key})")).await };
        let end_ghosts = async {
            let (high, low) = ((key as u64) >> 32, (key as u64) & 0xffff_ffff);
            let sql = format!(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
                 AND classid = {high} AND objid = {low} AND objsubid = 1 AND mode = 'ExclusiveLock' AND pid <> {}",
                self.backend
            );
            if let Err(failure) = link.ask(&sql, &[], Again::May).await {
                tracing::debug!(error = %failure.fault, "an earlier witness was not looked for");
            }
        };
        let (locked, ()) = tokio::join!(lock, end_ghosts);
        locked?;
        self.witness = Some(key);
        Ok(())
    }

    /// Listens to these channels and to no others. At no time less is heard than before and after.
    pub(super) async fn become_as(
        &mut self,
        texts: &Texts,
        wanted: &BTreeSet<String>,
    ) -> Result<(), Failure> {
        // Behind a pooler a lock would stay with a session that serves others, and nobody relies on what is told there.
        let locks = if self.is_pooled {
            BTreeSet::new()
        } else {
            wanted.iter().flat_map(|channel| texts.ears_of(channel)).collect()
        };
        // Before the channels: what was told to nobody is committed by the time that a lock is granted, and is read then.
        let more: Vec<i64> = locks.difference(&self.locks).copied().collect();
        if !more.is_empty() {
            self.run(&format!(
                "SELECT pg_advisory_lock_shared(k) FROM unnest('{{{}}}'::bigint[]) k",
                list(&more)
            ))
            .await?;
            self.locks.extend(more);
        }
        let more: Vec<String> = wanted.difference(&self.present).cloned().collect();
        for portion in more.chunks(PORTION) {
            // Names of channels are ours: letters, digits and `_`.
            self.run(&portion.iter().map(|channel| format!("LISTEN {channel};")).collect::<String>()).await?;
            self.present.extend(portion.iter().cloned());
        }
        let less: Vec<String> = self.present.difference(wanted).cloned().collect();
        for portion in less.chunks(PORTION) {
            self.run(&portion.iter().map(|channel| format!("UNLISTEN {channel};")).collect::<String>())
                .await?;
            portion.iter().for_each(|channel| _ = self.present.remove(channel));
        }
        let less: Vec<i64> = self.locks.difference(&locks).copied().collect();
        if !less.is_empty() {
            self.run(&format!(
                "SELECT pg_advisory_unlock_shared(k) FROM unnest('{{{}}}'::bigint[]) k",
                list(&less)
            ))
            .await?;
            less.iter().for_each(|lock| _ = self.locks.remove(lock));
        }
        Ok(())
    }

    /// Finds out whether the other side still answers, and is still the same.
    pub(super) async fn pulse(&mut self) -> Result<(), Failure> {
        if self.who().await? != self.backend && !self.is_pooled {
            self.is_pooled = true;
            self.witness = None;
            tracing::warn!("{}", POOLED);
        }
        Ok(())
    }

    /// The next notification; `None` when the connection has ended. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Notification> {
        self.news.recv().await
    }

    /// The next one that is here already.
    pub(super) fn ready(&mut self) -> Option<Notification> {
        self.news.try_recv().ok()
    }
}

/// Numbers, as they stand in an array's text.
fn list(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Why there is no witness behind a pooler that changes servers.
pub(crate) const POOLED: &str = "a pooler stands between this program and PostgreSQL that gives each transaction another \
    connection: notifications and session locks do not work behind it, so that news of leases come by asking once a second, \
    and there is no crash witness; name the server itself, or have the pooler keep sessions";
