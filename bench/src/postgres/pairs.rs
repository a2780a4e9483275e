//! Acquire and release, uncontended and one after another.

use super::client;
use crate::table::Table;
use anyhow::ensure;
use leasehold::{Acquire, AttemptId, Bid, BootClock, Clock, Parting, Release, SharedStore, TraceContext};
use leasehold_testkit::postgres::Postgres;
use sqlx::{
    Connection as _, PgConnection,
    postgres::{PgAdvisoryLock, PgAdvisoryLockKey},
};
use std::{sync::Arc, time::Duration};
use tokio_postgres::Client;

const ROUNDS: usize = 7;
/// A round. Fewer where the disk has a say: it takes milliseconds for each.
const FORCED: usize = 100;
const UNFORCED: usize = 1_000;
const TTL: Duration = Duration::from_secs(10);

/// Pairs a second.
type Rate = f64;

pub(super) async fn run(table: &mut Table) -> anyhow::Result<()> {
    on(table, Postgres::new().fsync(), "each commit forced to the disk", FORCED).await?;
    on(table, Postgres::new(), "no commit forced to the disk", UNFORCED).await
}

async fn on(table: &mut Table, postgres: Postgres, how: &str, pairs: usize) -> anyhow::Result<()> {
    let server = postgres.start().await?;
    server.sql("CREATE TABLE lock (name text PRIMARY KEY, token uuid NOT NULL, until timestamptz NOT NULL)");
    let store = leasehold::connect(&format!("{}?migrate=yes", server.url())).await?;
    let bare = Arc::new(client(&server.url()).await?);
    let mut advisory = PgConnection::connect(&server.url()).await?;
    // Taken in turns, so that a busy moment meets all of them; the best of each, for a disturbance only slows.
    let mut best = [0.0_f64; 3];
    for _ in 0..ROUNDS {
        best[0] = best[0].max(tokio::spawn(ours(store.clone(), pairs)).await??);
        best[1] = best[1].max(tokio::spawn(bare_statements(bare.clone(), pairs)).await??);
        let (rate, back) = tokio::spawn(advisory_locks(advisory, pairs)).await??;
        (best[2], advisory) = (best[2].max(rate), back);
    }
    let [ours, bare, advisory] = best;
    table.row(
        format!("acquire and release, uncontended, pairs a second (PostgreSQL, {how})"),
        format!("{ours:.0}"),
        format!(
            "bare upsert and delete, prepared: {bare:.0} ({:.2}×); `PgAdvisoryLock` of sqlx, which writes nothing: \
             {advisory:.0} ({:.2}×)",
            ours / bare,
            ours / advisory
        ),
        "at least 0.9 of the bare statements",
        ROUNDS * pairs,
    );
    Ok(())
}

fn rate(since: leasehold::Moment, pairs: usize) -> Rate {
    pairs as f64 / BootClock.now().since(since).as_secs_f64()
}

async fn ours(store: SharedStore, pairs: usize) -> anyhow::Result<Rate> {
    let mut bid = Bid {
        name: "pair".try_into()?,
        replica: "bench".try_into()?,
        attempt: AttemptId::random(),
        ttl: TTL,
        floor: None,
        crash_witness: false,
        trace: TraceContext::NONE,
    };
    let parting = Parting::default();
    let begun = BootClock.now();
    for _ in 0..pairs {
        bid.attempt = AttemptId::random();
        let Acquire::Granted(granted) = store.acquire(&bid).await else { anyhow::bail!("it is held") };
        ensure!(store.release(&granted.claim, &parting).await == Release::Released);
    }
    Ok(rate(begun, pairs))
}

/// What one writes by hand: no fence, no history, nobody told.
async fn bare_statements(client: Arc<Client>, pairs: usize) -> anyhow::Result<Rate> {
    let take = client
        .prepare(
            "INSERT INTO lock VALUES ($1, $2::text::uuid, clock_timestamp() + interval '10 s') \
             ON CONFLICT (name) DO UPDATE SET token = excluded.token, until = excluded.until \
             WHERE lock.until < clock_timestamp()",
        )
        .await?;
    let give = client.prepare("DELETE FROM lock WHERE name = $1 AND token = $2::text::uuid").await?;
    let begun = BootClock.now();
    for _ in 0..pairs {
        let token = AttemptId::random().to_hex();
        ensure!(client.execute(&take, &[&"pair", &token]).await? == 1);
        ensure!(client.execute(&give, &[&"pair", &token]).await? == 1);
    }
    Ok(rate(begun, pairs))
}

async fn advisory_locks(connection: PgConnection, pairs: usize) -> anyhow::Result<(Rate, PgConnection)> {
    let lock = PgAdvisoryLock::with_key(PgAdvisoryLockKey::BigInt(4_711));
    let mut connection = connection;
    let begun = BootClock.now();
    for _ in 0..pairs {
        connection = lock.acquire(connection).await?.release_now().await?;
    }
    Ok((rate(begun, pairs), connection))
}
