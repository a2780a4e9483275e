//! Many who wait for one lease share the asking, and what one of them notices.

use super::{calls, until};
use crate::common::{bid, eventually, lease, open, won};
use leasehold_core::{Bid, LeaseState, LeaseStore, Predecessor, Scope, Watch};
use leasehold_redis::RedisStore;
use leasehold_testkit::redis::{Cluster, Redis, RedisServer};
use std::time::Duration;
use tokio::time::Instant;

/// No test waits for its end.
const LONG: Duration = Duration::from_secs(3_600);

async fn hold(address: &str) -> RedisStore {
    let store = open(address).await;
    let _claim = won(store.acquire(&Bid { crash_witness: true, ttl: LONG, ..bid("job", "holder") }).await);
    store
}

/// As a process that waits: it shares nothing with others.
async fn wait(address: &str) -> (RedisStore, Watch) {
    let store = open(address).await;
    let mut watch = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    until(&mut watch, |record| record.claim().is_some()).await;
    (store, watch)
}

async fn is_told_of_the_crash(watch: &mut Watch) {
    let told = until(watch, |record| record.state == LeaseState::Vacant).await;
    assert!(matches!(told.predecessor, Predecessor::Crashed(_)), "{told:?}");
}

#[allow(clippy::disallowed_methods, reason = "how long a test has counted")]
fn now() -> Instant {
    Instant::now()
}

/// How often in a second the server is asked for witnesses.
async fn rate(server: &RedisServer) -> f64 {
    let began = now();
    server.cli(&["CONFIG", "RESETSTAT"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = calls(server, "pubsub|numsub");
    f64::from(u32::try_from(asked).unwrap()) / began.elapsed().as_secs_f64()
}

/// Forty at 10 ms would ask four thousand times a second; they ask four hundred times.
#[tokio::test]
async fn a_crowd_asks_hardly_more_often_than_a_few() {
    let server = Redis::new().start().await.unwrap();
    let holder = hold(&server.url()).await;
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(wait(&server.url()).await);
    }
    // They find out about each other.
    eventually("they share it", async || rate(&server).await < 1_000.0).await;
    drop(holder);
    for (_, watch) in &mut crowd {
        is_told_of_the_crash(watch).await;
    }
}

/// One asks every 10 ms, the other once a minute.
#[tokio::test]
async fn what_one_has_noticed_all_are_told() {
    let (server, cluster) = (Redis::new().start().await.unwrap(), Cluster::start().await.unwrap());
    for address in [server.url(), cluster.url()] {
        let holder = hold(&address).await;
        let (_lazy, mut late) = wait(&format!("{address}?witness_poll=60s")).await;
        let (_eager, mut soon) = wait(&address).await;
        drop(holder);
        is_told_of_the_crash(&mut soon).await;
        is_told_of_the_crash(&mut late).await;
    }
}
