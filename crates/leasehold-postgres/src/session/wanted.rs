//! A session lock, as it is wanted, and the way to it.

use super::{NotLocked, SessionLock, open::Opened, trust};
use crate::pinned::pinned;
use crate::{key::Key, link::prepared};
use leasehold_core::{BootClock, Clock, Fence};
use std::{sync::atomic::AtomicU64, time::Duration};
use tokio::time::timeout;
use tokio_postgres::{Config, Socket, error::SqlState, tls::MakeTlsConnect};

/// The shortest silence after which a host is given up: systems count it in seconds.
pub const MIN_SILENCE: Duration = Duration::from_secs(4);

/// The longest silence after which a host is given up.
pub const MAX_SILENCE: Duration = Duration::from_secs(60 * 60);

/// How long the server may take to answer on the way to the lock, the wait for the lock itself not counted.
const PATIENCE: Duration = Duration::from_secs(10);

/// A session lock, as it is wanted.
#[derive(Debug, Clone)]
#[must_use = "nothing is locked before `take`"]
pub struct WantedLock {
    key: Key,
    wait: Option<Duration>,
    silence: Duration,
}

impl WantedLock {
    /// The exclusive lock of `key`. It waits for [`DEFAULT_WAIT`](crate::DEFAULT_WAIT), and a silent host is given up after
    /// 10 s, unless another time is named.
    pub fn new(key: impl Into<Key>) -> Self {
        Self { key: key.into(), wait: Some(crate::DEFAULT_WAIT), silence: Duration::from_secs(10) }
    }

    /// Waits at most this long, counted by the server: from 1 ms to [`MAX_WAIT`](crate::MAX_WAIT); what lies outside becomes
    /// the nearest.
    pub fn within(mut self, wait: Duration) -> Self {
        self.wait = Some(wait.clamp(Duration::from_millis(1), crate::MAX_WAIT));
        self
    }

    /// Asks once, and does not wait.
    pub const fn try_once(mut self) -> Self {
        self.wait = None;
        self
    }

    /// After how long a host that says nothing is given up by the server; from [`MIN_SILENCE`] to [`MAX_SILENCE`]. A proof is
    /// asked for every third of it.
    pub const fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Opens a connection for the lock, as the store of this address would, and takes it: see [`Self::take`].
    ///
    /// # Errors
    /// [`NotLocked`] says why not.
    pub async fn open(&self, config: &crate::Config) -> Result<SessionLock, NotLocked> {
        let (server, tls) = prepared(config).map_err(NotLocked::Config)?;
        self.take(&server, tls).await
    }

    /// Opens a connection for the lock, and takes it. For a moment there is a second connection, by which a pooler is found out.
    ///
    /// Dropping the future closes the connection; a server that was about to grant the lock frees it within a second.
    ///
    /// # Errors
    /// [`NotLocked`] says why not.
    pub async fn take<M>(&self, config: &Config, tls: M) -> Result<SessionLock, NotLocked>
    where
        M: MakeTlsConnect<Socket> + Clone,
        M::Stream: Send + 'static,
    {
        if !(MIN_SILENCE..=MAX_SILENCE).contains(&self.silence) {
            return Err(NotLocked::Silence(self.silence));
        }
        let opened = self.bounded(PATIENCE, self.reach(config, tls)).await?;
        self.lock(&opened).await?;
        let sent = BootClock.now();
        let fence = self.bounded(PATIENCE, self.fence(&opened)).await?;
        let lock = SessionLock {
            opened,
            key: self.key.clone(),
            fence,
            silence: self.silence,
            trusted_until: AtomicU64::new(trust(sent, self.silence).as_nanos()),
        };
        // The first proof: the lock is where we think it is.
        match lock.prove().await {
            Ok(_) => Ok(lock),
            Err(super::SessionLost::Failed { key, source }) => Err(NotLocked::Postgres { key, source }),
            Err(super::SessionLost::Silent { key, silence }) => {
                Err(NotLocked::TimedOut { key, within: silence })
            }
            Err(_) => Err(NotLocked::Pooled { key: self.key.clone() }),
        }
    }

    async fn bounded<T>(
        &self,
        within: Duration,
        step: impl Future<Output = Result<T, NotLocked>>,
    ) -> Result<T, NotLocked> {
        timeout(within, step)
            .await
            .unwrap_or_else(|_| Err(NotLocked::TimedOut { key: self.key.clone(), within }))
    }

    fn failed(&self) -> impl Fn(tokio_postgres::Error) -> NotLocked + '_ {
        |source| NotLocked::Postgres { key: self.key.clone(), source }
    }

    async fn reach<M>(&self, config: &Config, tls: M) -> Result<Opened, NotLocked>
    where
        M: MakeTlsConnect<Socket> + Clone,
        M::Stream: Send + 'static,
    {
        let opened = Opened::open(config, tls.clone()).await.map_err(self.failed())?;
        let standby = opened.client.query_typed("SELECT pg_is_in_recovery()", &[]).await;
        let standby = standby.and_then(|rows| rows.first().map_or(Ok(false), |row| row.try_get(0)));
        if standby.map_err(self.failed())? {
            return Err(NotLocked::Standby { key: self.key.clone() });
        }
        let other = match timeout(PATIENCE / 4, Opened::open(config, tls)).await {
            Ok(other) => other.map_err(self.failed())?,
            // It was let in and not served, while our first is idle: somebody serves one after the other.
            Err(_) => return Err(NotLocked::Pooled { key: self.key.clone() }),
        };
        if !pinned(&opened.client, opened.backend, &other.client, PATIENCE / 4)
            .await
            .map_err(self.failed())?
        {
            return Err(NotLocked::Pooled { key: self.key.clone() });
        }
        opened.settle(self.silence).await.map_err(self.failed())?;
        Ok(opened)
    }

    async fn lock(&self, opened: &Opened) -> Result<(), NotLocked> {
        let args = self.key.args();
        let tried = self.bounded(PATIENCE, async {
            let rows = opened.client.query_typed(&format!("SELECT pg_try_advisory_lock({args})"), &[]).await;
            rows.and_then(|rows| rows.first().map_or(Ok(false), |row| row.try_get(0))).map_err(self.failed())
        });
        if tried.await? {
            return Ok(());
        }
        let busy = |waited| NotLocked::Busy { key: self.key.clone(), waited };
        let Some(wait) = self.wait else { return Err(busy(Duration::ZERO)) };
        let statement = format!("SET lock_timeout = {}; SELECT pg_advisory_lock({args})", wait.as_millis());
        let waited = self.bounded(wait.saturating_add(PATIENCE), async {
            opened.client.batch_execute(&statement).await.map_err(|error| match error.code() {
                Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => busy(wait),
                _ => self.failed()(error),
            })
        });
        waited.await
    }

    /// The number of a transaction of its own: later ones are higher, over restarts too, for its record is on disk by then.
    async fn fence(&self, opened: &Opened) -> Result<Fence, NotLocked> {
        let number = opened
            .client
            .query_typed(
                "SELECT pg_current_xact_id()::text::bigint, pg_logical_emit_message(true, 'leasehold', '')",
                &[],
            )
            .await
            .and_then(|rows| rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0)))
            .map_err(self.failed())?;
        Fence::new(number.unsigned_abs()).map_err(NotLocked::Fence)
    }
}
