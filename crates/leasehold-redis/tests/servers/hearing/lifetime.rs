//! When there is a connection for what is heard, and when not (I11).

use super::{calls, ears, next, until};
use crate::common::{bid, eventually, lease, let_go, open, replica, round, win};
use futures_util::future::join_all;
use leasehold_core::{Bid, LeaseState, LeaseStore, Mail, Scope};
use leasehold_testkit::redis::Redis;

/// All connections but the one that asks.
fn connections(server: &leasehold_testkit::redis::RedisServer) -> usize {
    server.cli(&["CLIENT", "LIST"]).text().lines().count() - 1
}

#[tokio::test]
async fn there_is_a_second_connection_only_while_something_is_heard() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    round(&store, "job").await;
    assert_eq!(connections(&server), 1);
    let (first, second) = (lease("job"), lease("other"));
    let watch = store.watch(Scope::Names(vec![first.clone()])).await.unwrap();
    let again = store.watch(Scope::Names(vec![first.clone(), second])).await.unwrap();
    let inbox = store.inbox(&replica("me")).await.unwrap();
    assert_eq!(connections(&server), 2);
    let subscribed = |pattern: &str| {
        let channels = server.cli(&["PUBSUB", "CHANNELS", pattern]).text();
        channels.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    let events = ["leasehold:{job}:events".to_owned(), "leasehold:{other}:events".to_owned()];
    assert_eq!(subscribed("*:events"), events.clone().into());
    assert_eq!(subscribed("*:mail"), ["leasehold:{me}:mail".to_owned()].into());
    drop(again);
    // Counted: the other watch of it stays.
    eventually("one is left", async || subscribed("*:events") == events[..1].iter().cloned().collect()).await;
    drop(inbox);
    eventually("no letters are heard", async || subscribed("*:mail").is_empty()).await;
    drop(watch);
    eventually("the connection is gone", async || connections(&server) == 1).await;
    round(&store, "job").await;
}

/// Also of a store that is dropped in the middle of everything, at a server that says nothing.
#[tokio::test]
async fn nothing_is_left_of_a_store_that_was_dropped() {
    let server = Redis::new().start().await.unwrap();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for frozen in [false, true] {
        let store = std::sync::Arc::new(open(&format!("{}?response_timeout=60s", server.url())).await);
        let mut watch = store.watch(Scope::All).await.unwrap();
        let mut inbox = store.inbox(&replica("me")).await.unwrap();
        let _claim =
            crate::common::won(store.acquire(&Bid { crash_witness: true, ..bid("job", "me") }).await);
        assert_eq!(ears(&server).len(), 1);
        let waiting = frozen.then(|| {
            server.pause();
            let store = store.clone();
            tokio::spawn(async move { store.watch(Scope::Names(vec![lease("late")])).await.map(drop) })
        });
        if let Some(waiting) = waiting {
            // Long enough for the order to be under way; if it is not, the test shows less, and not something wrong.
            tokio::task::yield_now().await;
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
        }
        drop(store);
        let ended = async {
            while watch.next().await.is_some() {}
            while inbox.next().await.is_some() {}
        };
        tokio::time::timeout(crate::common::PATIENCE, ended).await.expect("both end with the store");
        eventually("no task is left", async || tasks() <= before).await;
        server.resume();
        eventually("no connection is left", async || connections(&server) == 0).await;
        server.cli(&["FLUSHALL"]);
    }
}

/// Ten thousand elections begin in one process at once, say: they share the requests that they need.
#[tokio::test]
async fn many_watches_are_opened_together_and_an_event_costs_its_own_watchers_alone() {
    const MANY: usize = 5_000;
    let server = Redis::new().start().await.unwrap();
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    let name = |n: usize| format!("job {n}");
    // The server knows the script from here on.
    store.inspect(&lease("job")).await.unwrap();
    server.cli(&["CONFIG", "RESETSTAT"]);
    let opening = (0..MANY).map(|n| store.watch(Scope::Names(vec![lease(&name(n))])));
    let mut watches: Vec<_> = join_all(opening).await.into_iter().map(Result::unwrap).collect();
    let requests = calls(&server, "subscribe");
    assert!(requests <= 30, "{requests} requests to subscribe");
    assert_eq!(calls(&server, "evalsha"), MANY as u64, "each lease is read once");
    for n in [0, 17, MANY - 1] {
        let granted = win(&other, &name(n)).await;
        until(&mut watches[n], |record| record.claim() == Some(&granted.claim)).await;
        let_go(&other, &granted.claim).await;
        until(&mut watches[n], |record| record.state == LeaseState::Vacant).await;
    }
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    for watch in &mut watches {
        assert!(matches!(next(watch).await, leasehold_core::Sighting::Trouble(_)));
    }
    // All of it is there again.
    let granted = win(&other, &name(4_321)).await;
    until(&mut watches[4_321], |record| record.claim() == Some(&granted.claim)).await;
}
