//! What a waiting candidate writes, and what a held lease costs beside it.

use crate::table::Table;
use leasehold::{Node, Verb};
use leasehold_testkit::FaultyStore;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(1);
const TTLS: u32 = 30;

#[tokio::main]
pub(crate) async fn run(table: &mut Table) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let url = format!("sqlite:{}", dir.path().join("leases.db").display());
    let leader = Node::connect(&url).await?;
    let leading = leader.election("duty").ttl(TTL).lead(|_| std::future::pending()).await?;
    wait_until(|| leading.leading().is_some()).await;

    let (counted, counts) = FaultyStore::new(leasehold::connect(&url).await?);
    let candidate = Node::builder(counted).start().await?;
    let waiting = candidate.election("duty").ttl(TTL).lead(|_| std::future::pending()).await?;
    tokio::time::sleep(TTL * TTLS).await;

    let writes = [Verb::Announce, Verb::Acquire, Verb::Withdraw, Verb::Post].map(|verb| counts.count(verb));
    let written: u64 = writes.iter().sum();
    let requests = counts.total();
    table.row(
        "store writes of an idle candidate, a ttl (SQLite, ttl 1 s)",
        format!("{:.2}", written as f64 / f64::from(TTLS)),
        format!(
            "a polling coordinator: 3 attempts a ttl; all requests, reads too: {:.2}",
            requests as f64 / f64::from(TTLS)
        ),
        "less than 1",
        TTLS as usize,
    );
    let _ = waiting.stop(Duration::from_secs(1)).await;
    let _ = leading.stop(Duration::from_secs(1)).await;
    Ok(())
}

pub(crate) async fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
