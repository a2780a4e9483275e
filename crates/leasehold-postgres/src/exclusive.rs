//! A lock for one transaction: taken at its beginning, released by its commit or rollback, whatever happens inside.
//!
//! ```text
//!  BEGIN ISOLATION LEVEL READ COMMITTED
//!  SELECT pg_try_advisory_xact_lock(key)      one round trip if it is free; if not, in one more:
//!  lock_timeout := wait · pg_advisory_xact_lock(key) · lock_timeout := what it was
//!  … the user's statements, each with a snapshot younger than the lock …
//!  SELECT · COMMIT                            one round trip; fails if one of them had failed
//! ```
//! It needs no lease, no table and no clock: the lock and the writes are one transaction, so nobody can hold one without the
//! other.

mod error;
mod interrupt;
mod wait;

pub use error::LockError;
pub use interrupt::Interrupt;

use crate::key::Key;
use interrupt::Interrupting;
use std::{convert::Infallible, time::Duration};
use tokio_postgres::{Client, IsolationLevel, Transaction};

/// How long [`exclusive`] and [`shared`] wait for the lock.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// The longest wait, a day: as for leases, whoever waits longer waits for something else.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs `work` in a transaction that alone holds the lock of `key`, and commits it: as
/// [`TransactionLock::exclusive`]`(key).run(client, work)`.
///
/// ```no_run
/// # async fn example(mut client: tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold_postgres::exclusive;
///
/// let billed = exclusive(&mut client, "invoice-run", async |tx| {
///     tx.execute("INSERT INTO invoice SELECT * FROM due", &[]).await
/// });
/// println!("{} invoices", billed.await?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`TransactionLock::run`].
pub async fn exclusive<T, E, F>(client: &mut Client, key: impl Into<Key>, work: F) -> Result<T, LockError<E>>
where
    F: AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
{
    TransactionLock::exclusive(key).run(client, work).await
}

/// As [`exclusive`], with a lock that others may hold shared at the same time.
///
/// # Errors
/// As [`TransactionLock::run`].
pub async fn shared<T, E, F>(client: &mut Client, key: impl Into<Key>, work: F) -> Result<T, LockError<E>>
where
    F: AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
{
    TransactionLock::shared(key).run(client, work).await
}

/// A lock for one transaction, as it is wanted.
#[derive(Debug, Clone)]
#[must_use = "nothing is locked before `run` or `lock`"]
pub struct TransactionLock {
    key: Key,
    shared: bool,
    // None: ask once.
    wait: Option<Duration>,
    interrupt: Option<Interrupt>,
}

impl TransactionLock {
    /// One that nobody else may hold.
    pub fn exclusive(key: impl Into<Key>) -> Self {
        Self { key: key.into(), shared: false, wait: Some(DEFAULT_WAIT), interrupt: None }
    }

    /// One that others may hold shared, and nobody exclusively.
    pub fn shared(key: impl Into<Key>) -> Self {
        Self { shared: true, ..Self::exclusive(key) }
    }

    /// Waits at most this long, counted by the server: from 1 ms to [`MAX_WAIT`]; what lies outside becomes the nearest.
    /// Default: [`DEFAULT_WAIT`].
    pub fn within(mut self, wait: Duration) -> Self {
        self.wait = Some(wait.clamp(Duration::from_millis(1), MAX_WAIT));
        self
    }

    /// Asks once, and does not wait.
    pub const fn try_once(mut self) -> Self {
        self.wait = None;
        self
    }

    /// Ends a statement that still runs when the future of [`run`](Self::run) is dropped. See [`Interrupt`].
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// Runs `work` in a transaction that holds the lock, and commits it if the work returns `Ok`.
    ///
    /// # What is guaranteed
    /// * From before the first statement of the work until after its commit or rollback, nobody else holds the lock: not if the
    ///   work fails, panics, or is dropped, and not if this process is killed. The server releases it, at the latest when it
    ///   learns that the connection is gone.
    /// * The work sees everything that earlier holders committed: the transaction is `READ COMMITTED`, whatever the session's
    ///   default, so each statement reads what was committed before it began.
    /// * `Ok` means committed. Work that swallows the error of a statement is [`LockError::Aborted`], where a plain `COMMIT`
    ///   would have rolled back without a word.
    /// * If this future is dropped, the rollback is already on its way, and the client can be used again at once: its next
    ///   statement waits for it. A statement that still runs is waited for first, unless an [`Interrupt`] ends it.
    ///
    /// # What is not
    /// * `REPEATABLE READ` and `SERIALIZABLE`. There, asking for the lock would itself fix the snapshot, *before* the lock is
    ///   granted, and the work would read what was true before its predecessor committed. Use `SERIALIZABLE` alone, and
    ///   repeat what fails; or a [`SessionLock`](crate::SessionLock) around a transaction that begins after it.
    /// * Effects outside of this transaction are not undone with it.
    ///
    /// The client must not be in a transaction. Behind a pooler this works in session and in transaction mode.
    ///
    /// # Errors
    /// [`LockError`] says whether the lock was held, and what is known of the work.
    pub async fn run<T, E, F>(&self, client: &mut Client, work: F) -> Result<T, LockError<E>>
    where
        F: AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
    {
        let mut interrupting = Interrupting::begin(self.interrupt.as_ref(), client);
        let done = self.run_through(client, work).await;
        interrupting.done();
        done
    }

    async fn run_through<T, E, F>(&self, client: &mut Client, work: F) -> Result<T, LockError<E>>
    where
        F: AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
    {
        let begin = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start();
        let tx = begin.await.map_err(LockError::Postgres)?;
        if let Err(error) = self.take(&tx).await {
            // Awaited, so that the client is free again when its owner hears of it.
            let _ = tx.rollback().await;
            return Err(error.into_any());
        }
        match work(&tx).await {
            Ok(output) => error::commit(tx).await.map(|()| output),
            Err(error) => {
                let _ = tx.rollback().await;
                Err(LockError::Work(error))
            }
        }
    }

    /// Takes the lock in a transaction that the user has begun, until its end. Call it before everything else in it.
    ///
    /// # Errors
    /// [`LockError::Busy`] if it was not free in time; [`LockError::Snapshot`] if the transaction is not `READ COMMITTED`, and
    /// so would read what was true before the lock was granted; or what the server said. After `Busy` and what the server said the
    /// transaction can only be rolled back, unless the lock was only [tried](Self::try_once).
    pub async fn lock(&self, tx: &Transaction<'_>) -> Result<(), LockError<Infallible>> {
        let level = tx.query_typed("SELECT current_setting('transaction_isolation')", &[]).await;
        let level = level.map_err(LockError::Postgres)?;
        let level: String = wait::first(&level).map_err(LockError::Postgres)?.unwrap_or_default();
        if level != "read committed" && level != "read uncommitted" {
            return Err(LockError::Snapshot { key: self.key.clone(), level });
        }
        self.take(tx).await
    }
}
