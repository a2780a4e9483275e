//! Losses: noticed at the next renewal, told in order, and never taken back.

use super::stage::{Grave, Log, MS, SECOND, Stage, TTL, assert_at, leads, name_of, rests, until};
use leasehold::{
    Happening, HoldError, LeaseStore, LostCause, ManualClock, MemoryStore, Moment, Node, Release, Standing,
    Stopped, TokioClock,
};
use leasehold_core::Verb;
use leasehold_testkit::Fault;
use std::{future::pending, sync::Arc};
use tokio::time::{Instant, sleep, timeout};

/// B06, B24, B30: seeing that somebody else has it, or that nobody has, ends the term at once, and for good: the lease
/// is won back only as another term, after the loss was told. Here the watch tells nothing.
#[tokio::test(start_paused = true)]
async fn an_ended_claim_is_lost_at_the_next_renewal_and_told_before_anything_new() {
    for rival_takes_it in [true, false] {
        let stage = Stage::new();
        stage.faults.always(Verb::Watch, Fault::Deaf);
        let (a, log) = stage.told("a").await;
        let rival = stage.sound("b").await;
        let grave = Grave::default();
        let election = a.election("l").lead({
            let grave = grave.clone();
            move |term| {
                let dropped = grave.digger(&term);
                async move {
                    let _dropped = dropped;
                    pending().await
                }
            }
        });
        let election = election.await.unwrap();
        let first = leads(&election).await;
        let begun = Instant::now();
        sleep(SECOND).await;
        stage.force("l").await;
        if rival_takes_it {
            // It has come and gone before the renewal is due.
            let held = rival.lease("l").try_once().hold(|_| sleep(SECOND)).await.unwrap();
            assert_eq!(held.release, Some(Release::Released));
        }
        until("a lost it", || !grave.is_empty()).await;
        assert_at(Instant::now(), begun + TTL / 3);
        until("a leads again", || election.leading().is_some_and(|fence| fence > first)).await;
        let told: Vec<_> = log.names();
        let expected = ["campaigning", "acquired", "lost", "worker-ended", "campaigning", "acquired"];
        assert_eq!(told, expected);
        let lost = log.first(|what| matches!(what, Happening::Lost { cause: LostCause::NotHolder(_) }));
        assert_at(lost.unwrap(), begun + TTL / 3);
    }
}

/// B68, B16: a holder that lost its lease in silence releases nothing that is not its own.
#[tokio::test(start_paused = true)]
async fn a_late_release_leaves_the_next_holder_alone() {
    let stage = Stage::new();
    let (a, b, c) = (stage.node("a").await, stage.sound("b").await, stage.sound("c").await);
    let holding = tokio::spawn(async move { a.lease("l").hold(|_| pending::<()>()).await });
    sleep(SECOND).await;
    // From now on nothing of what `a` asks is carried out before it is too late.
    stage.faults.always(Verb::Renew, Fault::LoseRequest);
    stage.faults.always(Verb::Release, Fault::Slow(3 * SECOND / 2));
    let next = tokio::spawn(async move { b.lease("l").hold(|_| sleep(60 * SECOND)).await });
    assert!(matches!(holding.await.unwrap(), Err(HoldError::Lost(_))));
    until("b has it", || stage.faults.count(Verb::Release) > 0).await;
    sleep(5 * SECOND).await;
    assert_eq!(stage.holder("l").await.as_deref(), Some("b"));
    assert!(c.lease("l").try_once().hold(|_| async {}).await.is_err());
    let finished = next.await.unwrap().unwrap();
    assert_eq!((finished.lost, finished.release), (None, Some(Release::Released)));
}

/// The work had ended well, but its lease had gone before: whoever relies on the lease must know.
#[tokio::test(start_paused = true)]
async fn work_that_outlived_its_lease_unnoticed_is_told_so_with_its_result() {
    let stage = Stage::new();
    stage.faults.always(Verb::Watch, Fault::Deaf);
    let a = stage.node("a").await;
    let holding = tokio::spawn(async move { a.lease("l").hold(|_| sleep(2 * SECOND)).await });
    sleep(SECOND).await;
    stage.force("l").await;
    let finished = holding.await.unwrap().unwrap();
    assert!(matches!(finished.lost, Some(LostCause::NotHolder(_))), "{finished:?}");
    let last = finished.standings.last().map(|stood| stood.standing.clone());
    assert!(matches!(last, Some(Standing::Lost { cause: LostCause::NotHolder(_) })));
}

/// B64: what begins, ends, and only what begins: over every way to lose, told by events and by standings alike.
#[tokio::test(start_paused = true)]
async fn gains_and_losses_pair_up() {
    let stage = Stage::new();
    let (a, log) = stage.told("a").await;
    let mut election = a.election("l").lead(|_| async { pending().await }).await.unwrap();
    for round in 0..8 {
        leads(&election).await;
        match round % 4 {
            0 => stage.force("l").await,
            1 => stage.faults.always(Verb::Renew, Fault::LoseRequest),
            2 => stage.faults.everything(&Fault::Hang),
            _ => election.step_down(SECOND, "testing"),
        }
        rests(&election).await;
        stage.faults.heal();
    }
    leads(&election).await;

    let mut seen = Vec::new();
    while let Ok(Some(stood)) = timeout(MS, election.standings().next()).await {
        seen.push((stood.fence, matches!(stood.standing, Standing::Lost { .. })));
    }
    let losses: Vec<_> = seen.iter().filter(|(_, lost)| *lost).map(|(fence, _)| *fence).collect();
    assert_eq!(losses.len(), 8, "{seen:?}");
    assert!(losses.is_sorted_by(|a, b| a < b), "{losses:?}");
    assert!(seen.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{seen:?}");
    assert_eq!(election.stop(SECOND).await, Stopped::Clean);
    assert_paired(&log, 9);
}

/// Each term is acquired, and after that its worker ends, before the next is acquired.
fn assert_paired(log: &Log, terms: usize) {
    let marks: Vec<_> =
        log.names().into_iter().filter(|name| ["acquired", "worker-ended"].contains(name)).collect();
    let expected = ["acquired", "worker-ended"].repeat(terms);
    assert_eq!(marks, expected, "{:?}", log.names());
}

/// B64: who never led has nothing to lose.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_never_led_is_told_of_no_loss() {
    let stage = Stage::new();
    let (a, b) = (stage.sound("a").await, stage.told("b").await);
    let _leader = a.election("l").lead(|_| async { pending().await }).await.unwrap();
    sleep(SECOND).await;
    let mut waiting = b.0.election("l").lead(|_| async { unreachable!("never leads") }).await.unwrap();
    sleep(60 * SECOND).await;
    assert!(timeout(SECOND, waiting.standings().next()).await.is_err(), "an open stream, and nothing in it");
    assert_eq!(waiting.stop(SECOND).await, Stopped::Clean);
    assert_eq!(b.1.names(), ["campaigning"]);
    let record = stage.memory.inspect(&name_of("l")).await.unwrap();
    assert_eq!(record.claim().unwrap().replica.as_str(), "a");
}

/// A worker that asks `check()` may see the end of trust before any timer does, for instance on waking from a suspend, and
/// give up by itself. That is a loss, not a worker that cannot work: no pause is owed to it.
#[tokio::test(start_paused = true)]
async fn a_worker_that_sees_the_loss_first_has_lost_and_not_failed() {
    let clock = ManualClock::starting_at(Moment::ORIGIN.after(100 * SECOND));
    let log = Log::default();
    let told = log.clone();
    let node = Node::builder(Arc::new(MemoryStore::new(Arc::new(TokioClock::new()))))
        .clock(Arc::new(clock.clone()))
        .observe(move |event| told.write(event))
        .start()
        .await
        .unwrap();
    let election = node.election("l").lead(|term| async move {
        loop {
            let _ = term.check()?;
            sleep(MS).await;
        }
    });
    let election = election.await.unwrap();
    let first = leads(&election).await;
    // No timer is due for another virtual second; only the clock has moved.
    clock.advance(TTL);
    until("it was told", || log.count("lost") == 1).await;
    let lost = log.first(|what| matches!(what, Happening::Lost { cause: LostCause::Expired })).unwrap();
    until("it leads again", || election.leading().is_some_and(|fence| fence > first)).await;
    assert!(Instant::now() < lost + SECOND, "back at once: {:?} after the loss", Instant::now() - lost);
}
