//! The questions that each pool is asked.

use std::{fmt, time::Duration};

use anyhow::{Context as _, Result, ensure};

use crate::direct::Session;

/// Takes the lock, whoever waits.
pub(crate) const LOCK: &str = "SELECT true FROM (SELECT pg_advisory_lock(4711)) AS taken";
/// Takes the lock if this session can have it at once.
pub(crate) const TRY: &str = "SELECT pg_try_advisory_lock(4711)";
/// Gives it back once.
pub(crate) const UNLOCK: &str = "SELECT pg_advisory_unlock(4711)";

/// Far above what anything here needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A pool with a single connection.
pub(crate) trait Pool {
    /// What it lends. Dropping it returns it.
    type Lent;
    /// Borrows the connection.
    async fn borrow(&self) -> Result<Self::Lent>;
    /// A statement that answers yes or no.
    async fn ask(lent: &mut Self::Lent, statement: &'static str) -> Result<bool>;
    /// Whether the connection is back.
    fn is_back(&self) -> bool;
    /// Closes all connections.
    async fn close(self) -> Result<()>;
}

/// What became of the lock.
pub(crate) struct Finding {
    pub(crate) pool: &'static str,
    pub(crate) way: String,
    pub(crate) after: After,
    pub(crate) next: Next,
    pub(crate) freed: &'static str,
}

/// The lock, once whoever took it has returned the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Held,
    Free,
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Held => "**held, by nobody**",
            Self::Free => "free",
        })
    }
}

/// What the next borrower is told when it tries the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It has it on top of the one that was left.
    Stacked,
    Granted,
    Refused,
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stacked => "**granted, on top of the first**",
            Self::Granted => "granted",
            Self::Refused => "refused",
        })
    }
}

/// Leaves a lock on the connection of a pool; `leave` takes it and returns the connection.
pub(crate) async fn of<P: Pool>(
    pool: P,
    named: (&'static str, &str),
    eyes: &Session,
    leave: impl AsyncFnOnce(P::Lent) -> Result<()>,
) -> Result<Finding> {
    ensure!(!eyes.sees_lock().await?, "the lock of the trial before is still held");
    leave(pool.borrow().await?).await?;
    back(&pool).await?;
    let after = if eyes.sees_lock().await? { After::Held } else { After::Free };
    let mut next = pool.borrow().await?;
    let still = eyes.sees_lock().await?;
    let told = match (P::ask(&mut next, TRY).await?, still) {
        (true, true) => Next::Stacked,
        (true, false) => Next::Granted,
        (false, _) => Next::Refused,
    };
    if told != Next::Refused {
        ensure!(P::ask(&mut next, UNLOCK).await?, "what was granted is given back");
    }
    let freed = match (after, still, eyes.sees_lock().await?) {
        (After::Free, ..) => "at the return",
        (After::Held, false, _) => "when the connection is lent again",
        (After::Held, true, true) => "when the connection is closed",
        (After::Held, true, false) => "when the next one gives it back",
    };
    drop(next);
    back(&pool).await?;
    pool.close().await?;
    eyes.until_free().await?;
    Ok(Finding { pool: named.0, way: named.1.to_owned(), after, next: told, freed })
}

/// The usual mistake: an early return, an error, a dropped future, and the unlock is never said.
pub(crate) async fn forget<P: Pool>(mut lent: P::Lent) -> Result<()> {
    ensure!(P::ask(&mut lent, LOCK).await?);
    Ok(())
}

async fn back<P: Pool>(pool: &P) -> Result<()> {
    until(|| async { Ok(pool.is_back()) }).await.context("the connection never came back")
}

/// Waits until it holds.
pub(crate) async fn until<F: Future<Output = Result<bool>>>(mut holds: impl FnMut() -> F) -> Result<()> {
    let waiting = async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, waiting).await?
}
