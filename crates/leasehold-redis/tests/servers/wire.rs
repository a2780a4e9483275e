//! What networks do between a store and its server.

use crate::common::{PATIENCE, bid, eventually, lease, let_go, open, renew, replica, win, won};
use leasehold_core::{Acquire, Force, LeaseState, LeaseStore, Parting, Release, Renew, Scope, Sighting};
use leasehold_testkit::{
    faults::{Direction, Proxy},
    redis::{Redis, RedisServer},
};
use std::time::Duration;
use tokio::time::timeout;

async fn behind_a_proxy() -> (RedisServer, Proxy, leasehold_redis::RedisStore) {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let store = open(&format!("redis://{}?response_timeout=300ms&timeout=300ms", proxy.addr())).await;
    // The scripts are known from here on: one request, one reply.
    let granted = win(&store, "warm").await;
    assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
    let_go(&store, &granted.claim).await;
    (server, proxy, store)
}

/// The reply of each verb is lost after the server has acted: what may be repeated is, and nothing is told wrongly (I7).
#[tokio::test]
async fn a_reply_that_is_lost_is_never_taken_for_a_no() {
    let (server, proxy, store) = behind_a_proxy().await;
    let wanted = bid("job", "me");
    proxy.lose_reply(1);
    // The same attempt again, over a new connection, within the same call: granted once, under one fence.
    let granted = won(store.acquire(&wanted).await);
    assert_eq!(granted.claim.fence.get(), 1);
    proxy.lose_reply(1);
    assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
    proxy.lose_reply(1);
    // The repetition is known as one: it does not say that nobody holds it.
    assert_eq!(store.release(&granted.claim, &Parting::default()).await, Release::Released);
    let late = store.release(&granted.claim, &Parting::default()).await;
    assert!(matches!(late, Release::NotHolder(_)), "another request: {late:?}");
    assert_eq!(proxy.broken(), 3);
    let granted = win(&store, "job").await;
    proxy.lose_reply(1);
    let forced = store.force_release(&lease("job"), &replica("ops"), "stuck").await;
    let (fence, replica) = (granted.claim.fence, granted.claim.replica);
    assert_eq!(forced, Force::Forced { fence, replica });
    assert_eq!(crate::common::keys(&server), ["leasehold:{job}:fence", "leasehold:{warm}:fence"]);
    assert_eq!(proxy.broken(), 4);
}

/// I7: the first request was carried out, its reply was lost, and the repetition is refused or never gets there.
#[tokio::test]
async fn what_was_perhaps_done_is_never_told_as_refused_for_what_became_of_its_repetition() {
    for refusal in ["min-replicas-to-write", "gone"] {
        let (server, proxy, _) = behind_a_proxy().await;
        let store = open(&format!("redis://{}?response_timeout=10s&timeout=10s", proxy.addr())).await;
        let bid = bid("job", "me");
        // Time to act between the request and its repetition.
        proxy.delay(Direction::Both, Duration::from_millis(300));
        proxy.lose_reply(1);
        let acting = async {
            eventually("it is done", async || {
                crate::common::keys(&server).contains(&"leasehold:{job}:claim".to_owned())
            })
            .await;
            match refusal {
                "gone" => {
                    proxy.refuse();
                    proxy.reset();
                }
                setting => drop(server.cli(&["CONFIG", "SET", setting, "3"])),
            }
        };
        let (answer, ()) = tokio::join!(store.acquire(&bid), acting);
        assert!(matches!(answer, Acquire::Unknown(_)), "{refusal}: {answer:?}");
        assert!(proxy.broken() > 0);
    }
}

#[tokio::test]
async fn a_request_that_is_swallowed_ends_with_an_unknown_outcome_and_the_way_is_found_again() {
    for direction in [Direction::Up, Direction::Down, Direction::Both] {
        let (_server, proxy, store) = behind_a_proxy().await;
        let wanted = bid("job", "me");
        proxy.blackhole(direction);
        let answer = timeout(PATIENCE, store.acquire(&wanted)).await.expect("an end");
        assert!(matches!(answer, Acquire::Unknown(_)), "{direction:?}: {answer:?}");
        proxy.heal();
        proxy.reset();
        eventually("settled by its attempt id", async || {
            matches!(store.acquire(&wanted).await, Acquire::Granted(granted) if granted.claim.fence.get() == 1)
        })
        .await;
    }
}

/// Nobody closes a cable that was cut: the subscription asks by itself, and begins again.
#[tokio::test]
async fn a_subscription_that_hears_nothing_finds_out() {
    let (server, proxy, store) = behind_a_proxy().await;
    let direct = open(&server.url()).await;
    let mut watch = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    proxy.blackhole(Direction::Both);
    let granted = win(&direct, "job").await;
    loop {
        if let Sighting::Trouble(_) = timeout(PATIENCE, watch.next()).await.expect("trouble").unwrap() {
            break;
        }
    }
    proxy.heal();
    proxy.reset();
    loop {
        let sighting = timeout(PATIENCE, watch.next()).await.expect("a state").unwrap();
        if let Sighting::State(record) = sighting
            && matches!(&record.state, LeaseState::Held { claim, .. } if *claim == granted.claim)
        {
            break;
        }
    }
}

#[tokio::test]
async fn a_slow_link_is_slow_and_no_more() {
    let (_server, proxy, store) = behind_a_proxy().await;
    proxy.delay(Direction::Both, Duration::from_millis(40));
    for n in 0..5 {
        crate::common::round(&store, &format!("job {n}")).await;
    }
    assert_eq!(proxy.broken(), 0);
}
