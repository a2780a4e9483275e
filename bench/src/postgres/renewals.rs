//! Ten thousand renewals, together and one by one.

use crate::table::Table;
use leasehold::{Acquire, AttemptId, Bid, BootClock, Clock, Renew, Renewal, SharedStore, TraceContext};
use leasehold_testkit::{
    Proxy,
    postgres::{Postgres, PostgresServer, framing},
};
use std::time::Duration;

const LEASES: usize = 10_000;
const TTL: Duration = Duration::from_secs(10);

/// What a way of renewing cost.
struct Cost {
    round_trips: u64,
    /// Transactions that wrote.
    commits: u64,
    took: Duration,
}

pub(super) async fn run(table: &mut Table) -> anyhow::Result<()> {
    let server = Postgres::new().start().await?;
    // By way of a proxy that counts whatever has to be answered.
    let proxy = Proxy::framed(server.addr(), framing()).await?;
    let store = leasehold::connect(&format!("{}?migrate=yes", server.url_at(proxy.addr()))).await?;
    let mut renewals = Vec::with_capacity(LEASES);
    for n in 0..LEASES {
        let bid = Bid {
            name: format!("lease {n}").try_into()?,
            replica: "bench".try_into()?,
            attempt: AttemptId::random(),
            ttl: Duration::from_secs(600),
            floor: None,
            crash_witness: false,
            trace: TraceContext::NONE,
        };
        let Acquire::Granted(granted) = store.acquire(&bid).await else { anyhow::bail!("a lease is held") };
        renewals.push(Renewal { claim: granted.claim, ttl: TTL * 60 });
    }
    let together = cost(&server, &proxy, async || renewed(&store, &renewals).await).await?;
    let each = cost(&server, &proxy, async || {
        for renewal in &renewals {
            renewed(&store, std::slice::from_ref(renewal)).await?;
        }
        Ok(())
    })
    .await?;
    table.row(
        "10,000 renewals of one process on PostgreSQL (no commit forced to the disk): round trips; commits; time",
        format!(
            "{}; {}; {:.0} ms",
            together.round_trips,
            together.commits,
            together.took.as_secs_f64() * 1e3
        ),
        format!(
            "one renewal a call: {}; {}; {:.0} ms (1/{:.0} of the round trips)",
            each.round_trips,
            each.commits,
            each.took.as_secs_f64() * 1e3,
            each.round_trips as f64 / together.round_trips as f64,
        ),
        "at most 1/20 of the round trips, one commit a batch",
        LEASES,
    );
    Ok(())
}

async fn renewed(store: &SharedStore, renewals: &[Renewal]) -> anyhow::Result<()> {
    let all = store.renew(renewals).await.iter().all(|answer| matches!(answer, Renew::Renewed { .. }));
    if all { Ok(()) } else { anyhow::bail!("a renewal failed") }
}

async fn cost(
    server: &PostgresServer,
    proxy: &Proxy,
    work: impl AsyncFnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Cost> {
    let before = (proxy.commands(), transactions(server)?, BootClock.now());
    work().await?;
    let took = BootClock.now().since(before.2);
    // The second look has a number of its own, too.
    let commits = transactions(server)? - before.1 - 1;
    Ok(Cost { round_trips: proxy.commands() - before.0, commits, took })
}

/// The number of the transaction that asks: each that writes takes the next one.
fn transactions(server: &PostgresServer) -> anyhow::Result<u64> {
    Ok(server.sql("SELECT pg_current_xact_id()").parse()?)
}
