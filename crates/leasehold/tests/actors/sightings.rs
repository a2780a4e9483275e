//! What a holder hears of its own lease: it is asked about at once, and only the store's answer ends a term.

use super::stage::{Grave, MS, SECOND, Stage, TTL, assert_at, leads, name_of, until};
use leasehold::{Fence, Happening, HoldError, LostCause, StoreErrorKind};
use leasehold_core::Verb;
use leasehold_testkit::Fault;
use std::{future::pending, time::Duration};
use tokio::time::{Instant, sleep, timeout};

const HOUR: Duration = Duration::from_secs(3600);

/// Somebody forces it, long before a renewal is due.
#[tokio::test(start_paused = true)]
async fn a_forced_release_is_noticed_at_once() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let grave = Grave::default();
    let election = node.election("l").ttl(HOUR).lead(grave.work()).await.unwrap();
    leads(&election).await;
    sleep(SECOND).await;
    let forced = Instant::now();
    stage.force("l").await;
    until("the work was dropped", || !grave.is_empty()).await;
    assert_at(grave.only().0, forced);
    assert_at(
        log.first(|what| matches!(what, Happening::Lost { cause: LostCause::NotHolder(_) })).unwrap(),
        forced,
    );
    assert_eq!(stage.faults.count(Verb::Renew), 1, "one question, and no renewal was due");
}

/// The store took the claim for that of a crashed process: the witness was not seen for a while. The next holder begins
/// at once, and the old one must not work beside it until its next renewal.
#[tokio::test(start_paused = true)]
async fn a_holder_whose_witness_was_missed_learns_at_once_that_another_took_over() {
    let stage = Stage::new();
    let (node, rival) = (stage.node("a").await, stage.sound("b").await);
    let grave = Grave::default();
    let election = node.election("l").ttl(HOUR).crash_witness(true).lead(grave.work()).await.unwrap();
    leads(&election).await;
    let next = rival.election("l").ttl(HOUR).lead(|_| async { pending().await }).await.unwrap();
    sleep(SECOND).await;
    let missed = Instant::now();
    assert_eq!(stage.memory.crash(node.replica()), [name_of("l")]);
    assert_eq!(leads(&next).await.get(), 2);
    until("the work was dropped", || !grave.is_empty()).await;
    assert_at(grave.only().0, missed);
    assert_eq!(stage.holder("l").await.as_deref(), Some("b"));
}

/// What a process watches for its holders costs one request, however many leases it holds, and its own doings nothing.
#[tokio::test(start_paused = true)]
async fn one_subscription_watches_all_leases_that_are_held() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let mut holding = Vec::new();
    for n in 0..200 {
        let node = node.clone();
        holding.push(tokio::spawn(async move {
            let lease = node.lease(format!("l{n}")).ttl(HOUR);
            if n % 2 == 0 {
                lease.hold(|_| pending::<()>()).await
            } else {
                lease.hold(|_| sleep(SECOND)).await
            }
        }));
    }
    sleep(2 * SECOND).await;
    assert_eq!(log.count("released"), 100);
    assert_eq!((stage.faults.count(Verb::Watch), stage.faults.count(Verb::Inspect)), (1, 0));
    assert_eq!(stage.faults.count(Verb::Renew), 0, "neither a grant nor a release casts doubt on anything");
    stage.force("l42").await;
    let lost = timeout(SECOND, holding.remove(42)).await.expect("at once").unwrap().unwrap_err();
    assert!(matches!(&lost, HoldError::Lost(lost) if lost.name == name_of("l42")), "{lost}");
    sleep(SECOND).await;
    assert_eq!((stage.faults.count(Verb::Renew), log.count("lost")), (1, 1), "nobody else was asked about");
}

/// Both elections of one process, one after the other: the older holder is told, also by what concerns the newer.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_granted_again_in_the_same_process_is_noticed_by_its_older_holder() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let (old, new) = (Grave::default(), Grave::default());
    let first = node.election("l").ttl(HOUR).lead(old.work()).await.unwrap();
    leads(&first).await;
    let second = node.election("l").ttl(HOUR).lead(new.work()).await.unwrap();
    sleep(SECOND).await;
    stage.force("l").await;
    assert_eq!(leads(&second).await.get(), 2);
    until("the old work was dropped", || !old.is_empty()).await;
    stage.force("l").await;
    until("the new work was dropped", || !new.is_empty()).await;
}

/// The watch saves time and nothing else: without it, the next renewal tells.
#[tokio::test(start_paused = true)]
async fn without_a_watch_the_next_renewal_tells() {
    let ways = [
        Fault::Deaf,
        Fault::Hang,
        Fault::Panic,
        Fault::Error(StoreErrorKind::Unreachable),
        Fault::Error(StoreErrorKind::Denied),
    ];
    for way in ways {
        let stage = Stage::new();
        stage.faults.always(Verb::Watch, way.clone());
        let node = stage.node("a").await;
        let grave = Grave::default();
        let begun = Instant::now();
        let election = node.election("l").lead(grave.work()).await.unwrap();
        assert_eq!(leads(&election).await, Fence::FIRST);
        sleep(SECOND).await;
        stage.force("l").await;
        until("the work was dropped", || !grave.is_empty()).await;
        assert_at(grave.only().0, begun + TTL / 3);
    }
}

/// One that failed at first is opened again, and then tells the present state too.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_restored_tells_what_was_missed() {
    let stage = Stage::new();
    stage.faults.next(Verb::Watch, vec![Fault::Error(StoreErrorKind::Unreachable); 3]);
    let node = stage.node("a").await;
    let grave = Grave::default();
    let election = node.election("l").ttl(HOUR).lead(grave.work()).await.unwrap();
    leads(&election).await;
    stage.force("l").await;
    timeout(SECOND * 10, until("the work was dropped", || !grave.is_empty()))
        .await
        .expect("long before a renewal");
    assert_eq!(stage.faults.count(Verb::Watch), 4);
}

/// A store in trouble is asked once more for a sighting, and no loss is made of that.
#[tokio::test(start_paused = true)]
async fn a_sighting_that_the_store_does_not_confirm_ends_nothing() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let election = node.election("l").lead(|_| async { pending().await }).await.unwrap();
    let fence = leads(&election).await;
    sleep(SECOND).await;
    // The question is lost; the claim is in fact over, and the next question tells.
    stage.faults.next(Verb::Renew, [Fault::Error(StoreErrorKind::Unreachable)]);
    stage.force("l").await;
    until("it is asked about", || stage.faults.count(Verb::Renew) == 1).await;
    sleep(MS).await;
    assert_eq!((election.leading(), log.count("jeopardy"), log.count("lost")), (Some(fence), 1, 0));
    until("it is lost", || log.count("lost") == 1).await;
}
