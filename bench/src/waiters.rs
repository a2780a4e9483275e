//! What a thousand candidates of one lease ask of a Redis server.

use crate::{idle::wait_until, table::Table};
use leasehold::Node;
use leasehold_testkit::redis::{Redis, RedisServer};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const NODES: usize = 10;
const EACH: usize = 100;
const TTL: Duration = Duration::from_secs(10);
const VACANCIES: usize = 20;
const QUIET: Duration = Duration::from_secs(20);

#[tokio::main]
pub(crate) async fn run(table: &mut Table) -> anyhow::Result<()> {
    let server = Redis::new().start().await?;
    let led = Arc::new(AtomicUsize::new(0));
    let (let_go, _) = tokio::sync::broadcast::channel::<()>(4);
    let mut waiting = Vec::new();
    for _ in 0..NODES {
        let node = Node::connect(&server.url()).await?;
        for _ in 0..EACH {
            let (led, let_go) = (led.clone(), let_go.clone());
            let election = node.election("duty").ttl(TTL).lead(move |_| {
                let mut end = let_go.subscribe();
                led.fetch_add(1, Ordering::Relaxed);
                async move {
                    drop(end.recv().await);
                    Ok(())
                }
            });
            waiting.push(election.await?);
        }
    }
    wait_until(|| led.load(Ordering::Relaxed) == 1).await;
    // Until all have been refused once and stand in line.
    tokio::time::sleep(TTL).await;
    let before = requests(&server);
    tokio::time::sleep(QUIET).await;
    let idle = (requests(&server) - before) as f64 / QUIET.as_secs_f64();

    let before = requests(&server);
    for round in 0..VACANCIES {
        drop(let_go.send(()));
        wait_until(|| led.load(Ordering::Relaxed) > round + 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let took = requests(&server) - before;
    let others = idle * 0.1 * VACANCIES as f64;
    let a_vacancy = (took as f64 - others).max(0.0) / VACANCIES as f64;
    table.row(
        "1,000 candidates of one lease on Redis (10 processes' worth, ttl 10 s): requests a second while idle; a vacancy",
        format!("{idle:.0}; {a_vacancy:.1}"),
        "candidates that poll every ttl/3: 300 a second; 1,000 a vacancy",
        "O(1) a vacancy",
        VACANCIES,
    );
    for election in waiting {
        let _ = election.stop(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Commands that clients sent, but for our own question.
fn requests(server: &RedisServer) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]).text();
    // What scripts do inside is counted under its own names: a script is one request.
    let sent = ["evalsha", "eval", "subscribe", "unsubscribe", "psubscribe"];
    let calls = |name: &str| -> u64 {
        let line = stats.lines().find_map(|line| line.strip_prefix(&*format!("cmdstat_{name}:calls=")));
        line.and_then(|calls| calls.split(',').next()?.parse().ok()).unwrap_or(0)
    };
    sent.iter().map(|name| calls(name)).sum()
}
