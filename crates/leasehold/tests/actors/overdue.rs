//! Releases that the store does not take when they are made: repeated in the background, as long as the lease may live.

use super::stage::{MS, SECOND, Stage, leads, until};
use leasehold::{Release, Stopped, StoreErrorKind};
use leasehold_core::Verb;
use leasehold_testkit::Fault;
use std::future::pending;
use tokio::time::{Instant, sleep, timeout};

/// B40: whoever let go is told that the store does not know of it yet, and it is told to the store when that listens again,
/// long before the lease would have expired.
#[tokio::test(start_paused = true)]
async fn a_release_that_the_store_did_not_take_is_repeated_in_the_background_until_the_lease_expires() {
    let minute = 60 * SECOND;
    for fault in [
        Fault::LoseRequest,
        Fault::Hang,
        Fault::Error(StoreErrorKind::NotWriting("NOREPLICAS".into())),
        Fault::Error(StoreErrorKind::Unreachable),
    ] {
        let stage = Stage::new();
        let (a, b) = (stage.node("a").await, stage.sound("b").await);
        stage.faults.always(Verb::Release, fault.clone());
        let held = a.lease("l").ttl(minute).hold(|_| async {}).await.unwrap();
        let told = held.release.unwrap();
        assert!(matches!(told, Release::Unknown(_) | Release::Refused(_)), "{fault:?}: {told:?}");
        let let_go = Instant::now();
        let renewals = stage.faults.count(Verb::Renew);
        sleep(minute / 2).await;
        assert_eq!(stage.holder("l").await.as_deref(), Some("a"), "{fault:?}");
        let asked = stage.faults.count(Verb::Release);
        assert!((5..100).contains(&asked), "{fault:?}: asked {asked} times");
        stage.faults.heal();
        assert!(b.lease("l").hold(|_| async {}).await.unwrap().lost.is_none());
        // At most a question that hangs, and a pause, of 2 s each.
        assert!(let_go.elapsed() < minute / 2 + 5 * SECOND, "{fault:?}: {:?}", let_go.elapsed());
        assert_eq!(stage.faults.count(Verb::Renew), renewals, "{fault:?}");
        // Nothing is asked for once it is settled.
        let asked = stage.faults.count(Verb::Release);
        sleep(minute).await;
        assert_eq!(stage.faults.count(Verb::Release), asked, "{fault:?}");
    }
}

/// A store that never listens is not asked for longer than the lease lives, nor after the end of its node.
#[tokio::test(start_paused = true)]
async fn a_release_is_repeated_no_longer_than_the_lease_lives_and_ends_with_its_node() {
    for leaves in [false, true] {
        let stage = Stage::new();
        let a = stage.node("a").await;
        stage.faults.always(Verb::Release, Fault::Hang);
        let held = a.lease("l").ttl(30 * SECOND).hold(|_| async {}).await.unwrap();
        assert!(matches!(held.release, Some(Release::Unknown(_))), "{:?}", held.release);
        if leaves {
            let begun = Instant::now();
            assert_eq!(a.shutdown(8 * SECOND).await, Stopped::Unconfirmed);
            assert!(begun.elapsed() <= 8 * SECOND + 2 * MS, "{:?}", begun.elapsed());
        } else {
            sleep(26 * SECOND).await;
        }
        let asked = stage.faults.count(Verb::Release);
        sleep(60 * SECOND).await;
        assert_eq!(stage.faults.count(Verb::Release), asked, "leaves {leaves}");
    }
}

/// A shutdown has the open release repeated as long as its own time lasts, and says what came of it: one of before, and
/// that of a worker which it ended itself.
#[tokio::test(start_paused = true)]
async fn a_shutdown_repeats_an_open_release_while_it_has_time() {
    for holds in [false, true] {
        let stage = Stage::new();
        let (a, b) = (stage.node("a").await, stage.sound("b").await);
        stage.faults.always(Verb::Release, Fault::LoseRequest);
        let lease = a.lease("l").ttl(600 * SECOND);
        let holding = tokio::spawn(lease.hold(move |term| async move {
            if holds {
                term.quiescing().await;
            }
        }));
        if holds {
            until("it is held", || stage.faults.count(Verb::Acquire) == 1).await;
        } else {
            let held = holding.await.unwrap().unwrap();
            assert!(matches!(held.release, Some(Release::Unknown(_))), "{:?}", held.release);
        }
        let waits = tokio::spawn(async move { b.lease("l").hold(|_| async {}).await.map(drop) });
        let faults = stage.faults.clone();
        tokio::spawn(async move {
            sleep(12 * SECOND).await;
            faults.heal();
        });
        let begun = Instant::now();
        assert_eq!(a.shutdown(30 * SECOND).await, Stopped::Clean, "holds {holds}");
        let took = begun.elapsed();
        assert!(took >= 12 * SECOND && took <= 15 * SECOND, "holds {holds}: {took:?}");
        timeout(SECOND, waits).await.expect("the next one leads at once").unwrap().unwrap();
    }
}

/// What somebody must mend first is asked for once more and holds up nobody; neither does what has expired.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_no_repair_and_for_nothing_that_is_over() {
    for (after, end) in [(SECOND, Stopped::Unconfirmed), (31 * SECOND, Stopped::Clean)] {
        let stage = Stage::new();
        let a = stage.node("a").await;
        stage.faults.always(Verb::Release, Fault::Error(StoreErrorKind::ReadOnly));
        let held = a.lease("l").ttl(30 * SECOND).hold(|_| async {}).await.unwrap();
        assert!(matches!(held.release, Some(Release::Refused(_))), "{:?}", held.release);
        sleep(after).await;
        let (begun, asked) = (Instant::now(), stage.faults.count(Verb::Release));
        assert_eq!(a.shutdown(20 * SECOND).await, end, "{after:?}");
        assert!(begun.elapsed() < SECOND, "{after:?}: {:?}", begun.elapsed());
        let again = stage.faults.count(Verb::Release) - asked;
        assert_eq!(again, u64::from(end == Stopped::Unconfirmed), "{after:?}");
    }
}

/// An election lets go and goes on; whoever leads next does so as soon as the store listens, and the late release is told.
#[tokio::test(start_paused = true)]
async fn an_election_whose_release_is_open_is_followed_long_before_the_ttl() {
    let hour = 3_600 * SECOND;
    let stage = Stage::new();
    let (a, log) = stage.told("a").await;
    stage.faults.always(Verb::Release, Fault::LoseRequest);
    let election = a.election("l").ttl(hour).lead(|term| async move {
        term.quiescing().await;
        Ok(())
    });
    let election = election.await.unwrap();
    let first = leads(&election).await;
    let b = stage.sound("b").await;
    let next = b.election("l").lead(|_| async { pending().await }).await.unwrap();
    election.step_down(SECOND, "testing");
    sleep(60 * SECOND).await;
    assert_eq!((election.leading(), next.leading(), log.count("released")), (None, None, 0));
    let healed = Instant::now();
    stage.faults.heal();
    assert!(leads(&next).await > first);
    assert!(healed.elapsed() <= 2 * SECOND + 10 * MS, "{:?}", healed.elapsed());
    until("the late release is told", || log.count("released") == 1).await;
    assert_eq!(log.count("lost"), 0);
}
