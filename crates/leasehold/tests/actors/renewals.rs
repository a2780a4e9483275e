//! Renewals that are refused, hang, panic, come late, or never succeed again.

use super::stage::{Grave, MS, SECOND, Stage, TRUST, TTL, assert_at, until};
use leasehold::{Defeat, HoldError, LostCause, Standing, StoreErrorKind};
use leasehold_core::Verb;
use leasehold_testkit::Fault;
use std::{future::pending, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// I4, B23: the deadline needs no answer from the store, whatever the store does instead of answering.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_dead_for_ever_costs_the_work_at_exactly_the_end_of_trust() {
    let ways = [
        Fault::Error(StoreErrorKind::Unreachable),
        Fault::Error(StoreErrorKind::Denied),
        Fault::Error(StoreErrorKind::Closed),
        Fault::LoseRequest,
        Fault::Hang,
        Fault::Panic,
        Fault::Late(TTL),
        Fault::Slow(TTL),
    ];
    for way in ways {
        let stage = Stage::new();
        let (node, log) = stage.told("a").await;
        let grave = Grave::default();
        let begun = Instant::now();
        let holding = tokio::spawn({
            let (node, grave) = (node.clone(), grave.clone());
            async move {
                let work = move |term: leasehold::Term| async move {
                    let _dropped = grave.digger(&term);
                    pending::<()>().await;
                };
                node.lease("l").hold(work).await
            }
        });
        sleep(SECOND).await;
        stage.faults.everything(&way);
        let lost = holding.await.unwrap().unwrap_err();
        assert!(
            matches!(&lost, HoldError::Lost(lost) if lost.cause == LostCause::Expired),
            "{way:?}: {lost}"
        );
        let (at, trusted) = grave.only();
        assert_at(at, begun + TRUST);
        assert!(!trusted, "{way:?}: whoever asked then was told");
        assert!(stage.faults.count(Verb::Renew) >= 2, "{way:?}: one attempt leaves room for another");
        assert_eq!(log.count("lost"), 1);
        assert!(log.count("jeopardy") >= 1, "{way:?}: told before the loss");
    }
}

/// I7: a renewal whose answer is lost is no success, though the store did renew: trust ends as if it had not.
#[tokio::test(start_paused = true)]
async fn renewals_whose_answers_are_lost_extend_no_trust() {
    for way in [Fault::LoseReply, Fault::HangAfter] {
        let stage = Stage::new();
        let (a, b) = (stage.node("a").await, stage.sound("b").await);
        let grave = Grave::default();
        let begun = Instant::now();
        let holding = tokio::spawn({
            let grave = grave.clone();
            async move {
                let work = move |term: leasehold::Term| async move {
                    let _dropped = grave.digger(&term);
                    pending::<()>().await;
                };
                a.lease("l").hold(work).await
            }
        });
        sleep(SECOND).await;
        stage.faults.always(Verb::Renew, way);
        assert!(matches!(holding.await.unwrap(), Err(HoldError::Lost(_))));
        assert_at(grave.only().0, begun + TRUST);
        // The store works otherwise: what nobody uses any more is released at once, not left to expire.
        let next = timeout(MS, b.lease("l").hold(|term| async move { term.predecessor().fate() })).await;
        assert_eq!(next.unwrap().unwrap().output.as_str(), "released");
    }
}

/// B21: an error is no loss. The renewals go on, and afterwards at their ordinary pace.
#[tokio::test(start_paused = true)]
async fn transient_errors_for_six_tenths_of_a_ttl_lose_nothing() {
    for way in [Fault::Error(StoreErrorKind::Unreachable), Fault::LoseRequest, Fault::Panic, Fault::Hang] {
        let stage = Stage::new();
        let (node, log) = stage.told("a").await;
        let holding = tokio::spawn({
            let node = node.clone();
            async move {
                node.lease("l").hold(|term| async move { (sleep(60 * SECOND).await, term.check()) }).await
            }
        });
        until("it was renewed", || stage.faults.count(Verb::Renew) == 1).await;
        stage.faults.everything(&way);
        sleep(TTL * 6 / 10).await;
        let tries = stage.faults.count(Verb::Renew) - 1;
        // A hanging store is asked less often than one that fails at once: each attempt takes half of what is left.
        assert!(tries >= if way == Fault::Hang { 1 } else { 2 }, "{way:?}: {tries}");
        assert!(tries <= 30, "{way:?}: {tries} requests in six seconds are too many for a store in trouble");
        stage.faults.heal();
        until("it is renewed again", || stage.faults.count(Verb::Renew) > tries + 1).await;
        let healed = stage.faults.count(Verb::Renew);
        sleep(30 * SECOND).await;
        let pace = stage.faults.count(Verb::Renew) - healed;
        assert!((8..=10).contains(&pace), "{way:?}: {pace} renewals in 9 intervals");
        let finished = holding.await.unwrap().unwrap();
        assert!(finished.output.1.is_ok());
        assert_eq!((finished.lost, log.count("lost")), (None, 0));
        assert!(log.count("jeopardy") <= 2, "{way:?}: one trouble is told once, not once a try");
    }
}

#[tokio::test(start_paused = true)]
async fn one_hanging_renewal_leaves_room_for_the_next() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    stage.faults.next(Verb::Renew, [Fault::Hang]);
    let held =
        node.lease("l").hold(|term| async move { (sleep(20 * SECOND).await, term.check().is_ok()) }).await;
    assert!(held.unwrap().output.1);
    assert_eq!((log.count("jeopardy"), log.count("lost")), (1, 0));
    assert_eq!(stage.faults.met(), 1);
}

/// B10: trust is counted from the sending of a renewal that succeeded, not from its answer.
#[tokio::test(start_paused = true)]
async fn a_slow_success_is_worth_only_what_is_left_of_it() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    stage
        .faults
        .next(Verb::Renew, [Fault::Late(2 * SECOND), Fault::Hang, Fault::Hang, Fault::Hang, Fault::Hang]);
    let begun = Instant::now();
    let grave = Grave::default();
    let work = {
        let grave = grave.clone();
        move |term: leasehold::Term| async move {
            let _dropped = grave.digger(&term);
            sleep(TTL / 3 + 2 * SECOND + 2 * MS).await;
            // Sent at a third, answered two seconds later.
            let left = term.remaining();
            assert!(left <= TRUST - 2 * SECOND && left >= TRUST - 2 * SECOND - 5 * MS, "{left:?}");
            stage.faults.everything(&Fault::Hang);
            pending::<()>().await;
        }
    };
    let lost = node.lease("l").hold(work).await.unwrap_err();
    assert!(matches!(lost, HoldError::Lost(_)), "{lost}");
    assert_at(grave.only().0, begun + TTL / 3 + TRUST);
}

/// B12: a grant that comes later than it is worth is undone, and is no grant.
#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_too_late_is_undone() {
    for late in [95, 120] {
        let stage = Stage::new();
        let (a, b) = (stage.node("a").await, stage.sound("b").await);
        stage.faults.always(Verb::Acquire, Fault::Late(TTL * late / 100));
        let tried =
            a.lease("l").try_once().hold(|_| async { unreachable!("never trusted") }).await.unwrap_err();
        let HoldError::NotAcquired { defeat: Defeat::TimedOut { .. }, .. } = &tried else {
            panic!("{tried}")
        };
        let free = timeout(SECOND, b.lease("l").hold(|_| async {})).await;
        assert!(free.is_ok(), "{late} %: the name is free soon after");
    }
}

/// B12: what the waiting for the grant took is missing from its trust.
#[tokio::test(start_paused = true)]
async fn a_slow_grant_is_worth_only_what_is_left_of_it() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    stage.faults.next(Verb::Acquire, [Fault::Late(TTL * 8 / 10)]);
    // The renewal, long due, is on its way.
    stage.faults.next(Verb::Renew, [Fault::Slow(100 * MS)]);
    let held = node.lease("l").hold(|term| async move { term.remaining() }).await.unwrap();
    assert!(held.output <= TTL / 10, "{:?}", held.output);
    assert_eq!(held.lost, None);
}

/// B88: an idle leader asks once an interval, and a store that fails at once is not hammered.
#[tokio::test(start_paused = true)]
async fn the_rate_of_renewals_is_bounded() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let holding = tokio::spawn({
        let node = node.clone();
        async move { node.lease("l").hold(|_| pending::<()>()).await }
    });
    sleep(60 * SECOND).await;
    let idle = stage.faults.total();
    assert!(idle <= 24, "{idle} requests in a minute");
    stage.faults.everything(&Fault::Error(StoreErrorKind::Unreachable));
    assert!(matches!(holding.await.unwrap(), Err(HoldError::Lost(_))));
    let failing = stage.faults.count(Verb::Renew);
    assert!(failing <= 18 + 45, "{failing} renewals in all");
}

/// B70: what observers are told of a term is in order, and ends with its end.
#[tokio::test(start_paused = true)]
async fn the_standings_of_a_term_are_in_order_and_end_with_its_end() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let begun = Instant::now();
    let mut election = node.election("l").lead(|_| async { pending().await }).await.unwrap();
    let mut seen = Vec::new();
    sleep(5 * SECOND).await;
    stage.faults.everything(&Fault::Error(StoreErrorKind::Unreachable));
    loop {
        let stood = election.standings().next().await.unwrap();
        seen.push(stood.standing.clone());
        if matches!(stood.standing, Standing::Lost { .. }) {
            break;
        }
    }
    // Renewed once, at a third of the ttl.
    assert_at(Instant::now(), begun + TTL / 3 + TRUST);
    let kinds: Vec<_> = seen
        .iter()
        .map(|standing| match standing {
            Standing::Held { .. } => "held",
            Standing::Jeopardy { .. } => "jeopardy",
            Standing::HandingOver { .. } => "handing over",
            Standing::Lost { .. } => "lost",
        })
        .collect();
    assert_eq!(kinds, ["held", "jeopardy", "lost"], "{seen:?}");
}

/// A worker that asks is told the truth at each instant, also between the renewals.
#[tokio::test(start_paused = true)]
async fn checks_hold_throughout_and_permits_only_what_can_finish() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let work = |term: leasehold::Term| async move {
        for _ in 0..1_000 {
            sleep(100 * MS).await;
            let left = term.remaining();
            // A renewal every third of the ttl: two thirds of it less the margin are always left.
            assert!(left > Duration::from_millis(5_600) && left <= TRUST, "{left:?}");
            assert!(term.permit(left - MS).is_ok() && term.permit(left).is_err());
        }
    };
    assert!(node.lease("l").hold(work).await.is_ok());
}
