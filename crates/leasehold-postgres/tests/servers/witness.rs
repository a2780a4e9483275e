//! The crash witness on a real server.

use crate::common::{PATIENCE, bid, eventually, open, renew, server};
use leasehold_core::{
    Acquire, Bid, LeaseState, LeaseStore, Predecessor, Renew, Scope, Sighting, StoreErrorKind,
};
use leasehold_testkit::{
    Proxy,
    conformance::{lease, won},
    faults::Direction,
    postgres::{Postgres, framing},
};
use tokio::time::timeout;

fn witnessed(name: &str, by: &str) -> Bid {
    Bid { crash_witness: true, ..bid(name, by) }
}

const LOCKS: &str =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'";

/// The end of a store's connections is all that the server sees of the end of its process.
#[tokio::test]
async fn a_waiter_hears_of_a_crash_and_takes_over_though_the_ttl_is_long() {
    let server = server(Postgres::new()).await;
    let (holder, waiter) = (open(&server.url()).await, open(&server.url()).await);
    let first = won(holder.acquire(&witnessed("job", "a")).await);
    let mut watch = waiter.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    drop(holder);
    let crashed = async {
        loop {
            if let Some(Sighting::State(record)) = watch.next().await
                && record.state == LeaseState::Vacant
            {
                return record.predecessor;
            }
        }
    };
    let fate = timeout(PATIENCE, crashed).await.expect("it is told");
    assert!(matches!(fate, Predecessor::Crashed(_)), "{fate:?}");
    let second = won(waiter.acquire(&witnessed("job", "b")).await);
    assert!(second.claim.fence > first.claim.fence);
    assert!(matches!(second.predecessor, Predecessor::Crashed(ended) if ended.fence == first.claim.fence));
}

#[tokio::test]
async fn a_witness_that_was_ended_is_connected_again_and_the_lease_renewed() {
    let server = server(Postgres::new()).await;
    let store = open(&server.url()).await;
    let granted = won(store.acquire(&witnessed("job", "a")).await);
    for _ in 0..3 {
        server.terminate_clients();
        eventually("it is renewed", async || match renew(&store, &granted.claim).await {
            Renew::Renewed { .. } => true,
            Renew::Refused(error) => {
                assert_eq!(*error.kind(), StoreErrorKind::Unwitnessed, "{error}");
                false
            }
            // The end of its own connection met it, and the end of the next one its repetition.
            Renew::Unknown(_) => false,
            other @ Renew::NotHolder(_) => panic!("nobody took it: {other:?}"),
        })
        .await;
    }
    assert_eq!(server.sql(LOCKS), "1");
}

/// A half-open connection: the server still believes in the old session and its lock. The new session takes it over, and at
/// no moment is it free.
#[tokio::test]
async fn a_witness_whose_old_session_lives_on_takes_its_lock_over() {
    let server = server(Postgres::new()).await;
    let proxy = Proxy::framed(server.addr(), framing()).await.unwrap();
    let address = format!("{}?response_timeout=300ms", server.url_at(proxy.addr()));
    let (store, other) = (open(&address).await, open(&server.url()).await);
    let granted = won(store.acquire(&witnessed("job", "a")).await);
    let backend = || {
        server.sql(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'",
        )
    };
    let before = backend();
    proxy.blackhole(Direction::Both);
    eventually("something was lost", async || proxy.swallowed() > 0).await;
    proxy.heal();
    eventually("another session holds the lock", async || {
        let answer = other.acquire(&bid("job", "b")).await;
        assert!(matches!(answer, Acquire::Held(_)), "the lock was never free: {answer:?}");
        let now = backend();
        !now.is_empty() && now != before
    })
    .await;
    assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
}
