//! Acquire and release on Redis, uncontended and one after another.

use crate::table::Table;
use anyhow::Context as _;
use leasehold::{Acquire, AttemptId, Bid, BootClock, Clock, LeaseStore, Parting, Release, TraceContext};
use leasehold_redis::RedisStore;
use leasehold_testkit::redis::Redis;
use redis::aio::MultiplexedConnection;
use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

const ROUNDS: usize = 7;
const PAIRS: usize = 4_000;
const TTL: Duration = Duration::from_secs(10);

/// Pairs a second.
type Rate = f64;

#[tokio::main]
pub(crate) async fn run(table: &mut Table) -> anyhow::Result<()> {
    let server = Redis::new().start().await?;
    let url = server.url();
    let store = Arc::new(RedisStore::open(&url).await?);
    let bare = redis::Client::open(&*url)?.get_multiplexed_async_connection().await?;
    let locks = rslock::LockManager::new(vec![&*url]);
    // Taken in turns, so that a busy moment meets all of them; the best of each, for a disturbance only slows. As tasks, as
    // in a service: the thread of `main` is no worker, and each answer would have to wake it.
    let mut best = [0.0_f64; 3];
    for _ in 0..ROUNDS {
        best[0] = best[0].max(tokio::spawn(ours(store.clone())).await??);
        best[1] = best[1].max(tokio::spawn(bare_commands(bare.clone())).await??);
        best[2] = best[2].max(tokio::spawn(rslock_pairs(locks.clone())).await??);
    }
    let python = redis_py(&url).map_or_else(
        |error| format!("redis-py was not measured: {error}"),
        |rate| format!("redis-py: {rate:.0} ({:.1}×)", best[0] / rate),
    );
    let [ours, bare, rslock] = best;
    table.row(
        "acquire and release, uncontended, pairs a second (Redis, one after another)",
        format!("{ours:.0}"),
        format!(
            "bare SET NX PX and DEL on the same client: {bare:.0} ({:.2}×); rslock: {rslock:.0} ({:.1}×); {python}",
            ours / bare,
            ours / rslock
        ),
        "at least 0.9 of the bare commands",
        ROUNDS * PAIRS,
    );
    Ok(())
}

fn rate(since: leasehold::Moment) -> Rate {
    PAIRS as f64 / BootClock.now().since(since).as_secs_f64()
}

async fn ours(store: Arc<RedisStore>) -> anyhow::Result<Rate> {
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
    for _ in 0..PAIRS {
        bid.attempt = AttemptId::random();
        let Acquire::Granted(granted) = store.acquire(&bid).await else { anyhow::bail!("it is held") };
        if store.release(&granted.claim, &parting).await != Release::Released {
            anyhow::bail!("it was not released");
        }
    }
    Ok(rate(begun))
}

async fn bare_commands(mut connection: MultiplexedConnection) -> anyhow::Result<Rate> {
    let begun = BootClock.now();
    for _ in 0..PAIRS {
        let token = AttemptId::random().to_hex();
        let set: String = redis::cmd("SET")
            .arg("lock")
            .arg(token)
            .arg("NX")
            .arg("PX")
            .arg(10_000)
            .query_async(&mut connection)
            .await?;
        anyhow::ensure!(set == "OK");
        let gone: u32 = redis::cmd("DEL").arg("lock").query_async(&mut connection).await?;
        anyhow::ensure!(gone == 1);
    }
    Ok(rate(begun))
}

async fn rslock_pairs(locks: rslock::LockManager) -> anyhow::Result<Rate> {
    let begun = BootClock.now();
    for _ in 0..PAIRS {
        let lock = locks.lock("rslock", TTL).await.map_err(|error| anyhow::anyhow!("{error}"))?;
        locks.unlock(&lock).await;
    }
    Ok(rate(begun))
}

/// The lock of the usual Python client, in a process of its own, with the client's own settings.
fn redis_py(url: &str) -> anyhow::Result<Rate> {
    const SCRIPT: &str = "
import sys, time, redis
client = redis.Redis.from_url(sys.argv[1])
best = 0
for _ in range(5):
    begun = time.monotonic()
    for _ in range(2000):
        lock = client.lock('py', timeout=10)
        assert lock.acquire(blocking=False)
        lock.release()
    best = max(best, 2000 / (time.monotonic() - begun))
print(best)
";
    let packages = std::env::current_exe()?.with_file_name("python");
    let installed = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--target"])
        .arg(&packages)
        .arg("redis==8.1.0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    anyhow::ensure!(installed.success(), "it could not be installed");
    let run = Command::new("python3").args(["-c", SCRIPT, url]).env("PYTHONPATH", packages).output()?;
    let said = String::from_utf8_lossy(&run.stdout);
    said.trim().parse().with_context(|| String::from_utf8_lossy(&run.stderr).into_owned())
}
