//! Ten thousand renewals on Redis, together and one by one.

use crate::table::Table;
use leasehold::{Acquire, AttemptId, Bid, Renew, Renewal, SharedStore, TraceContext};
use leasehold_testkit::redis::{Redis, RedisServer};
use std::time::Duration;

const LEASES: usize = 10_000;
const TTL: Duration = Duration::from_secs(10);

/// What a way of renewing cost.
struct Cost {
    round_trips: u64,
    /// Of this process and of the server.
    cpu: f64,
}

#[tokio::main]
pub(crate) async fn run(table: &mut Table) -> anyhow::Result<()> {
    let server = Redis::new().start().await?;
    let store = leasehold::connect(&server.url()).await?;
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
        renewals.push(Renewal { claim: granted.claim, ttl: TTL });
    }
    let together = cost(&server, async || renewed(&store, &renewals).await).await?;
    let each = cost(&server, async || {
        for renewal in &renewals {
            renewed(&store, std::slice::from_ref(renewal)).await?;
        }
        Ok(())
    })
    .await?;
    table.row(
        "10,000 renewals of one process on Redis (ttl 10 s): round trips; processor time of both sides",
        format!("{}; {:.0} ms", together.round_trips, together.cpu * 1e3),
        format!(
            "one renewal a call: {}; {:.0} ms (1/{:.0} of the round trips, 1/{:.1} of the processor time)",
            each.round_trips,
            each.cpu * 1e3,
            each.round_trips as f64 / together.round_trips as f64,
            each.cpu / together.cpu
        ),
        "at most 1/20 and 1/5",
        LEASES,
    );
    Ok(())
}

async fn renewed(store: &SharedStore, renewals: &[Renewal]) -> anyhow::Result<()> {
    let all = store.renew(renewals).await.iter().all(|answer| matches!(answer, Renew::Renewed { .. }));
    if all { Ok(()) } else { anyhow::bail!("a renewal failed") }
}

async fn cost(server: &RedisServer, work: impl AsyncFnOnce() -> anyhow::Result<()>) -> anyhow::Result<Cost> {
    let before = (scripts(server), cpu(server));
    work().await?;
    Ok(Cost { round_trips: scripts(server) - before.0, cpu: cpu(server) - before.1 })
}

/// Scripts that ran. Each is a round trip of its own, or shares one with others.
fn scripts(server: &RedisServer) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]).text();
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    calls.and_then(|calls| calls.split(',').next()?.parse().ok()).unwrap_or(0)
}

/// Seconds of the processor, ours and the server's.
fn cpu(server: &RedisServer) -> f64 {
    let info = server.cli(&["INFO", "cpu"]).text();
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.trim().strip_prefix(name));
        line.and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0)
    };
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat[stat.rfind(')').unwrap_or(0)..].split(' ').skip(12).take(2);
    let ours: f64 = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    field("used_cpu_user:") + field("used_cpu_sys:") + ours / rustix::param::clock_ticks_per_second() as f64
}
