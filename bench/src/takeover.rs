//! How long nobody leads, after a release, a kill and an expiry.

mod polling;
mod replica;

pub(crate) use replica::holder;

use crate::table::{Table, median, ms, p99};
use anyhow::Context as _;
use leasehold::{LeaseName, LeaseState, SharedStore};
use leasehold_testkit::{postgres::Postgres, redis::Redis};
use replica::{Replica, Way};
use std::time::Duration;

const RELEASES: usize = 200;
const KILLS: usize = 30;
const EXPIRIES: usize = 30;
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(500);

#[tokio::main]
pub(crate) async fn run(table: &mut Table) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let url = format!("sqlite:{}", dir.path().join("leases.db").display());
    let goals = ["median below 30 ms", "median below 50 ms", "median below 30 ms"];
    on(table, "SQLite", &url, goals).await?;
    let server = Redis::new().start().await?;
    on(table, "Redis", &server.url(), ["median below 5 ms", "median below 20 ms", "median below 10 ms"])
        .await?;
    let server = Postgres::new().fsync().start().await?;
    let url = format!("{}?migrate=yes", server.url());
    on(table, "PostgreSQL", &url, ["median below 10 ms", "median below 20 ms", "median below 30 ms"]).await
}

/// After a release, a kill, an expiry.
async fn on(table: &mut Table, kind: &str, url: &str, goals: [&'static str; 3]) -> anyhow::Result<()> {
    let store = leasehold::connect(url).await?;
    let mut ours = releases(url, Way::Leasehold, RELEASES).await?;
    let mut theirs = releases(url, Way::Polling, 20).await?;
    let what = format!("takeover after a release ({kind}, ttl 1 s)");
    row(table, &what, &mut ours, &mut theirs, goals[0]);

    let mut ours = kills(url, Way::Witness, LONG, KILLS, &store).await?;
    let mut theirs = kills(url, Way::Polling, Duration::from_secs(1), 10, &store).await?;
    let what = format!(
        "takeover after SIGKILL ({kind}, ttl 30 s with the crash witness; the coordinator at ttl 1 s)"
    );
    row(table, &what, &mut ours, &mut theirs, goals[1]);

    let mut ours = expiries(url, Way::Leasehold, EXPIRIES, &store).await?;
    let mut theirs = expiries(url, Way::Polling, EXPIRIES / 2, &store).await?;
    let what = format!("takeover after an expiry, beyond the expiry ({kind}, ttl 500 ms)");
    row(table, &what, &mut ours, &mut theirs, goals[2]);
    Ok(())
}

fn row(table: &mut Table, what: &str, ours: &mut [Duration], theirs: &mut [Duration], goal: &'static str) {
    let (mine, beside) = (median(ours), median(theirs));
    let ratio = beside.as_secs_f64() / mine.as_secs_f64();
    table.row(
        what,
        format!("{} (p99 {})", ms(mine), ms(p99(ours))),
        format!("a polling coordinator: {} (p99 {}), {ratio:.0}× as long", ms(beside), ms(p99(theirs))),
        goal,
        ours.len(),
    );
}

/// Two processes pass a lease to and fro.
async fn releases(url: &str, way: Way, rounds: usize) -> anyhow::Result<Vec<Duration>> {
    let name = format!("release {way:?}");
    let mut leader = Replica::spawn(url, &name, Duration::from_secs(1), way).await?;
    leader.begins().await?;
    let mut waiter = Replica::spawn(url, &name, Duration::from_secs(1), way).await?;
    let mut gaps = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        waiter.waits().await?;
        let ended = leader.end().await?;
        gaps.push(waiter.leads().await?.since(ended));
        std::mem::swap(&mut leader, &mut waiter);
    }
    Ok(gaps)
}

/// The leader is killed with SIGKILL while another waits.
async fn kills(
    url: &str,
    way: Way,
    ttl: Duration,
    rounds: usize,
    store: &SharedStore,
) -> anyhow::Result<Vec<Duration>> {
    let name = format!("kill {way:?}");
    let mut leader = Replica::spawn(url, &name, ttl, way).await?;
    leader.begins().await?;
    let mut gaps = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let mut waiter = Replica::spawn(url, &name, ttl, way).await?;
        waiter.waits().await?;
        settled(store, &name).await?;
        let killed = leader.kill().await?;
        gaps.push(waiter.leads().await?.since(killed));
        leader = waiter;
    }
    Ok(gaps)
}

/// The leader is killed without a witness; counted from the instant at which the store's record expires.
async fn expiries(url: &str, way: Way, rounds: usize, store: &SharedStore) -> anyhow::Result<Vec<Duration>> {
    let name = format!("expiry {way:?}");
    let mut leader = Replica::spawn(url, &name, SHORT, way).await?;
    leader.begins().await?;
    let mut gaps = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let mut waiter = Replica::spawn(url, &name, SHORT, way).await?;
        waiter.waits().await?;
        let killed = leader.kill().await?;
        let expiry = killed.after(settled(store, &name).await?);
        gaps.push(waiter.leads().await?.since(expiry));
        leader = waiter;
    }
    Ok(gaps)
}

/// How long the record is still held; also makes sure that it is.
async fn settled(store: &SharedStore, name: &str) -> anyhow::Result<Duration> {
    let record = store.inspect(&LeaseName::try_from(name)?).await?;
    match record.state {
        LeaseState::Held { remaining, .. } => Ok(remaining),
        _ => None.context("nobody holds the lease that was to be taken over"),
    }
}
