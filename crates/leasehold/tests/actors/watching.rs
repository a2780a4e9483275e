//! Waiters: woken by a release at once, and by the clock where no news comes.

use super::stage::{MS, SECOND, Stage, TTL, leads};
use leasehold::{Node, Stopped, StoreErrorKind};
use leasehold_core::Verb;
use leasehold_testkit::{Fault, Faults, FaultyStore, faults::Mix};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

/// A lease of half a minute, held until the sender is dropped.
async fn held_by(node: &Node) -> oneshot::Sender<()> {
    let (end, ended) = oneshot::channel::<()>();
    let (began, begun) = oneshot::channel();
    let node = node.clone();
    tokio::spawn(async move {
        let work = |_| async move {
            let _ = began.send(());
            let _ = ended.await;
        };
        node.lease("l").ttl(30 * SECOND).hold(work).await.map(drop)
    });
    begun.await.unwrap();
    end
}

/// B98 (a): a release at any moment around the waiter's look, its enlisting and its subscription wakes it at once.
#[tokio::test(start_paused = true)]
async fn a_release_around_the_subscription_is_not_missed() {
    for seed in 0..150 {
        let stage = Stage::new();
        let (a, b) = (stage.sound("a").await, stage.node("b").await);
        let end = held_by(&a).await;
        // Every request of the waiter takes its time, on the way there or back.
        let delays = (0..4).flat_map(|n| [Fault::Slow(n * MS), Fault::Late(n * MS)]);
        stage.faults.seeded(Mix { seed, chance: 1.0, faults: delays.collect() });
        let waiting = tokio::spawn(async move { b.lease("l").hold(|_| async { Instant::now() }).await });
        sleep(Duration::from_micros(seed * 100)).await;
        let freed = Instant::now();
        drop(end);
        let led = timeout(SECOND, waiting).await.expect("within a second of thirty").unwrap().unwrap();
        let waited = led.output - freed;
        assert!(waited <= 40 * MS, "seed {seed}: {waited:?}");
    }
}

/// B98 (b, c), B100: with the watch broken in any way a release costs at most the ttl, and works again once it heals.
#[tokio::test(start_paused = true)]
async fn a_broken_watch_costs_at_most_the_ttl() {
    let ways = [
        Fault::Deaf,
        Fault::Hang,
        Fault::HangAfter,
        Fault::Panic,
        Fault::Error(StoreErrorKind::Unreachable),
        Fault::Error(StoreErrorKind::Denied),
    ];
    for way in ways {
        let stage = Stage::new();
        let (a, b) = (stage.sound("a").await, stage.node("b").await);
        let end = held_by(&a).await;
        stage.faults.always(Verb::Watch, way.clone());
        let waiting = tokio::spawn(async move { b.lease("l").hold(|_| async { Instant::now() }).await });
        sleep(60 * SECOND).await;
        let freed = Instant::now();
        drop(end);
        let led = timeout(60 * SECOND, waiting).await.expect("by the clock").unwrap().unwrap();
        assert!(led.output - freed <= 30 * SECOND + 50 * MS, "{way:?}: {:?}", led.output - freed);
        assert!(stage.faults.count(Verb::Watch) >= 1);
    }
}

/// B100: a subscription that failed is restored by itself, and then a release is heard at once again.
#[tokio::test(start_paused = true)]
async fn a_watch_that_failed_is_restored() {
    for way in [Fault::Hang, Fault::Panic, Fault::Error(StoreErrorKind::Unreachable)] {
        let stage = Stage::new();
        let (a, b) = (stage.sound("a").await, stage.node("b").await);
        let end = held_by(&a).await;
        stage.faults.next(Verb::Watch, vec![way.clone(); 3]);
        let waiting = tokio::spawn(async move { b.lease("l").hold(|_| async { Instant::now() }).await });
        sleep(60 * SECOND).await;
        assert_eq!(stage.faults.count(Verb::Watch), 4, "{way:?}");
        let freed = Instant::now();
        drop(end);
        let led = timeout(SECOND, waiting).await.expect("at once").unwrap().unwrap();
        assert!(led.output - freed <= 10 * MS, "{way:?}");
    }
}

/// A crash is told by nobody: the waiter leads when the store lets it, and no later.
#[tokio::test(start_paused = true)]
async fn a_crash_costs_the_ttl_and_no_more() {
    // Also for one that comes late to a watch that its process has kept for long.
    for late in [false, true] {
        let stage = Stage::new();
        let (dying, faults): (Arc<FaultyStore>, Faults) = FaultyStore::new(Arc::new(stage.memory.clone()));
        let a = Node::builder(dying).replica("a").clock(stage.clock.clone()).start().await.unwrap();
        let b = stage.node("b").await;
        let leader = a.election("l").lead(|_| async { pending().await }).await.unwrap();
        leads(&leader).await;
        let first = b.election("l").lead(|_| async { pending().await }).await.unwrap();
        sleep(60 * SECOND + 500 * MS).await;
        faults.everything(&Fault::Hang);
        let died = Instant::now();
        let waiter = if late {
            sleep(SECOND).await;
            // The first of the line is gone, and the watch has seen nothing for a minute.
            let second = b.election("l").lead(|_| async { pending().await }).await.unwrap();
            sleep(MS).await;
            assert_eq!(first.stop(SECOND).await, Stopped::Clean);
            second
        } else {
            first
        };
        leads(&waiter).await;
        let took = died.elapsed();
        assert!(took <= TTL + 50 * MS, "late {late}: {took:?}");
    }
}

/// The roster and the letters are a courtesy: a store that fails at them elects nonetheless.
#[tokio::test(start_paused = true)]
async fn without_a_roster_and_without_letters_there_is_a_leader_all_the_same() {
    for way in [Fault::Hang, Fault::Panic, Fault::Error(StoreErrorKind::Denied)] {
        let stage = Stage::new();
        for verb in [Verb::Announce, Verb::Withdraw, Verb::Candidates, Verb::Inbox] {
            stage.faults.always(verb, way.clone());
        }
        let (a, b) = (stage.node("a").await, stage.node("b").await);
        let first = a.election("l").lead(|_| async { pending().await }).await.unwrap();
        leads(&first).await;
        let second = b.election("l").lead(|_| async { pending().await }).await.unwrap();
        sleep(SECOND).await;
        assert_eq!(first.stop(SECOND).await, Stopped::Clean);
        timeout(SECOND, leads(&second)).await.expect("woken by the release");
    }
}

/// B90: without a roster nobody knows the order, and yet they are no herd.
#[tokio::test(start_paused = true)]
async fn without_a_roster_candidates_do_not_all_bid_at_once() {
    let stage = Stage::new();
    stage.faults.always(Verb::Candidates, Fault::Error(StoreErrorKind::Unreachable));
    let a = stage.sound("a").await;
    let first = a.election("l").lead(|_| async { pending().await }).await.unwrap();
    leads(&first).await;
    let mut waiting = Vec::new();
    for n in 0..64 {
        let node = stage.node(&format!("r{n}")).await;
        waiting.push(node.election("l").lead(|_| async { pending().await }).await.unwrap());
    }
    sleep(SECOND).await;
    let bids = stage.faults.count(Verb::Acquire);
    assert_eq!(first.stop(SECOND).await, Stopped::Clean);
    sleep(SECOND).await;
    assert_eq!(waiting.iter().filter(|election| election.leading().is_some()).count(), 1);
    let bids = stage.faults.count(Verb::Acquire) - bids;
    assert!(bids <= 24, "{bids} of 64 bid for one vacancy");
}
