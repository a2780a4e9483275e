//! `sqlx`: its pool as it is, with a hook, and its own advisory lock.

use anyhow::{Result, ensure};
use sqlx::{
    Postgres,
    pool::PoolConnection,
    postgres::{PgAdvisoryLock, PgAdvisoryLockKey, PgPoolOptions},
};

use crate::{
    direct::Session,
    trial::{self, Finding, Pool},
};

struct Sqlx(sqlx::PgPool);

impl Pool for Sqlx {
    type Lent = PoolConnection<Postgres>;

    async fn borrow(&self) -> Result<Self::Lent> {
        Ok(self.0.acquire().await?)
    }

    async fn ask(lent: &mut Self::Lent, statement: &'static str) -> Result<bool> {
        Ok(sqlx::query_scalar(statement).fetch_one(&mut **lent).await?)
    }

    fn is_back(&self) -> bool {
        self.0.num_idle() == 1
    }

    async fn close(self) -> Result<()> {
        self.0.close().await;
        Ok(())
    }
}

pub(crate) async fn findings(url: &str, eyes: &Session) -> Result<Vec<Finding>> {
    let one = || PgPoolOptions::new().max_connections(1);
    let plain = Sqlx(one().connect(url).await?);
    let plain = trial::of(plain, ("sqlx", "the pool as it is"), eyes, trial::forget::<Sqlx>).await?;

    let guarded = Sqlx(one().connect(url).await?);
    let guard = async |lent| {
        let lock = PgAdvisoryLock::with_key(PgAdvisoryLockKey::BigInt(4711));
        let guard = lock.acquire(lent).await?;
        // With its connection inside.
        drop(guard);
        Ok(())
    };
    let guarded = trial::of(guarded, ("sqlx", "a `PgAdvisoryLockGuard`, dropped"), eyes, guard).await?;

    let hook = one().after_release(|connection, _| {
        Box::pin(async move {
            sqlx::query("SELECT pg_advisory_unlock_all()").execute(connection).await?;
            Ok(true)
        })
    });
    let hooked = Sqlx(hook.connect(url).await?);
    let named = ("sqlx", "`after_release` with `SELECT pg_advisory_unlock_all()`");
    let hooked = trial::of(hooked, named, eyes, async |mut lent| {
        ensure!(Sqlx::ask(&mut lent, trial::LOCK).await?);
        Ok(())
    });
    Ok(vec![plain, guarded, hooked.await?])
}
