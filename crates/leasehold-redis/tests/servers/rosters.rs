//! What stays of candidates who went without a word.

use crate::common::{eventually, keys, lease, open, replica};
use leasehold_core::{AttemptId, Candidacy, Roster};
use leasehold_redis::RedisStore;
use leasehold_testkit::redis::{Redis, RedisServer};
use std::time::Duration;

/// How many die without a word.
const MANY: i64 = 1_000;

fn candidacy(by: &str) -> Candidacy {
    Candidacy { name: lease("job"), replica: replica(by), id: AttemptId::random(), priority: 0 }
}

fn entries(server: &RedisServer) -> [Option<i64>; 2] {
    let hash = server.cli(&["HLEN", "leasehold:{job}:roster"]).number();
    [hash, server.cli(&["ZCARD", "leasehold:{job}:ends"]).number()]
}

async fn who(store: &RedisStore) -> Vec<Candidacy> {
    store.candidates(&lease("job")).await.unwrap()
}

/// Whoever refreshes sweeps as well as whoever comes, and each of them a bounded number.
#[tokio::test]
async fn the_dead_go_soon_while_others_keep_the_roster() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let living = candidacy("living");
    for n in 0..MANY {
        store.announce(&candidacy(&format!("dead {n}")), Duration::from_millis(1)).await.unwrap();
        if n == 0 {
            store.announce(&living, Duration::from_secs(60)).await.unwrap();
        }
    }
    // However many died at the same time: a second life for all of them, then the end.
    let ids = server.cli(&["HKEYS", "leasehold:{job}:roster"]).text();
    assert!(ids.lines().count() <= 257, "they were swept while they came");
    let time: i64 = server.cli(&["TIME"]).text().lines().next().unwrap().parse().unwrap();
    for n in 0..MANY {
        let (id, till) = (AttemptId::random().to_hex(), ((time - 60) * 1_000 + n % 7).to_string());
        let words = format!("until={till} joined=1 priority=0 replica=dead");
        server.cli(&["HSET", "leasehold:{job}:roster", &id, &words]);
        server.cli(&["ZADD", "leasehold:{job}:ends", &till, &id]);
    }
    assert_eq!(who(&store).await, std::slice::from_ref(&living), "they count for nobody");
    let before = entries(&server)[0].unwrap();
    let mut calls = 0;
    while entries(&server) != [Some(1), Some(1)] {
        let left = entries(&server)[0];
        store.announce(&living, Duration::from_secs(60)).await.unwrap();
        calls += 1;
        assert!(left.unwrap() - entries(&server)[0].unwrap() <= 256, "bounded");
        assert!(calls <= 1 + before / 256, "each call sweeps");
    }
    assert_eq!(who(&store).await, std::slice::from_ref(&living));
    store.withdraw(&living).await.unwrap();
    assert_eq!(keys(&server), [""; 0]);
}

/// The end of a candidacy moves with each refresh: none that lives is swept.
#[tokio::test]
async fn a_candidacy_that_is_refreshed_keeps_its_place_and_expires_with_its_last_refresh() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let (first, second) = (candidacy("first"), candidacy("second"));
    store.announce(&first, Duration::from_millis(200)).await.unwrap();
    store.announce(&second, Duration::from_secs(60)).await.unwrap();
    for _ in 0..20 {
        store.announce(&first, Duration::from_secs(60)).await.unwrap();
    }
    assert_eq!(who(&store).await, [first.clone(), second.clone()]);
    store.announce(&first, Duration::from_millis(1)).await.unwrap();
    eventually("it is over", async || who(&store).await == [second.clone()]).await;
    store.announce(&second, Duration::from_secs(60)).await.unwrap();
    assert_eq!(entries(&server), [Some(1), Some(1)]);
    // It comes again: at the end of the line.
    store.announce(&first, Duration::from_secs(60)).await.unwrap();
    assert_eq!(who(&store).await, [second, first]);
}
