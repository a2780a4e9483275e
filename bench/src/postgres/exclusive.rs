//! A lock for one transaction, and a write under it.

use super::client;
use crate::table::Table;
use anyhow::ensure;
use leasehold::{BootClock, Clock};
use leasehold_postgres::exclusive;
use leasehold_testkit::postgres::Postgres;
use sqlx::{
    Connection as _, PgConnection,
    postgres::{PgAdvisoryLock, PgAdvisoryLockKey},
};
use tokio_postgres::Client;

const ROUNDS: usize = 7;
/// A round. Fewer where the disk has a say: it takes milliseconds for each.
const FORCED: usize = 100;
const UNFORCED: usize = 1_000;

const WRITE: &str = "UPDATE counter SET n = n + 1";

pub(super) async fn run(table: &mut Table) -> anyhow::Result<()> {
    on(table, Postgres::new().fsync(), "each commit forced to the disk", FORCED).await?;
    on(table, Postgres::new(), "no commit forced to the disk", UNFORCED).await
}

async fn on(table: &mut Table, postgres: Postgres, how: &str, count: usize) -> anyhow::Result<()> {
    let server = postgres.start().await?;
    server.sql("CREATE TABLE counter AS SELECT 0 AS n");
    let mut client = client(&server.url()).await?;
    let mut session = PgConnection::connect(&server.url()).await?;
    let mut best = [0.0_f64; 3];
    for _ in 0..ROUNDS {
        let (ours, back) = tokio::spawn(under_exclusive(client, count)).await??;
        let (bare, back) = tokio::spawn(by_hand(back, count)).await??;
        client = back;
        let (theirs, back) = tokio::spawn(under_a_session_lock(session, count)).await??;
        session = back;
        best = [best[0].max(ours), best[1].max(bare), best[2].max(theirs)];
    }
    let [ours, bare, theirs] = best;
    table.row(
        format!("`exclusive` and one write in it, transactions a second (PostgreSQL, {how})"),
        format!("{ours:.0}"),
        format!(
            "the bare transaction with `pg_advisory_xact_lock`: {bare:.0} ({:.2}×); `PgAdvisoryLock` of sqlx around a \
             transaction: {theirs:.0} ({:.2}×)",
            ours / bare,
            ours / theirs
        ),
        "at least 0.9 of the bare transaction",
        ROUNDS * count,
    );
    Ok(())
}

fn rate(since: leasehold::Moment, count: usize) -> f64 {
    count as f64 / BootClock.now().since(since).as_secs_f64()
}

async fn under_exclusive(mut client: Client, count: usize) -> anyhow::Result<(f64, Client)> {
    let write = client.prepare(WRITE).await?;
    let begun = BootClock.now();
    for _ in 0..count {
        exclusive(&mut client, "counter", async |tx| tx.execute(&write, &[]).await).await?;
    }
    Ok((rate(begun, count), client))
}

async fn by_hand(mut client: Client, count: usize) -> anyhow::Result<(f64, Client)> {
    let lock = client.prepare("SELECT pg_advisory_xact_lock($1)").await?;
    let write = client.prepare(WRITE).await?;
    let begun = BootClock.now();
    for _ in 0..count {
        let tx = client.transaction().await?;
        tx.execute(&lock, &[&4_711_i64]).await?;
        ensure!(tx.execute(&write, &[]).await? == 1);
        tx.commit().await?;
    }
    Ok((rate(begun, count), client))
}

async fn under_a_session_lock(
    mut session: PgConnection,
    count: usize,
) -> anyhow::Result<(f64, PgConnection)> {
    let lock = PgAdvisoryLock::with_key(PgAdvisoryLockKey::BigInt(4_711));
    let begun = BootClock.now();
    for _ in 0..count {
        let mut guard = lock.acquire(session).await?;
        let mut tx = guard.as_mut().begin().await?;
        sqlx::query(WRITE).execute(&mut *tx).await?;
        tx.commit().await?;
        session = guard.release_now().await?;
    }
    Ok((rate(begun, count), session))
}
