//! Outcomes that nobody knows: lost answers, dropped futures, timeouts at the moment of success.

use super::stage::{MS, SECOND, Stage, TTL, leads, until};
use leasehold::{Node, Release, Stopped, Term};
use leasehold_core::Verb;
use leasehold_testkit::{Fault, Stepper};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// B81: the retry has the same attempt id, so the store grants the same fence again, and at once.
#[tokio::test(start_paused = true)]
async fn an_acquire_whose_reply_was_lost_is_recognized_by_its_attempt() {
    for way in [Fault::LoseReply, Fault::LoseRequest] {
        let stage = Stage::new();
        let node = stage.node("a").await;
        stage.faults.next(Verb::Acquire, [way.clone(), way.clone()]);
        let begun = Instant::now();
        let held = node.lease("l").wait(5 * SECOND).hold(|_| async {}).await.unwrap();
        assert!(begun.elapsed() < SECOND, "{way:?}: {:?}", begun.elapsed());
        assert_eq!(held.fence.get(), 1, "{way:?}: one claim, one fence");
        assert_eq!(stage.faults.count(Verb::Acquire), 3);
    }
}

/// A bid that was stuck on its way for longer than its own term lasted holds the lease for nobody.
#[tokio::test(start_paused = true)]
async fn a_bid_that_straggles_past_the_end_of_its_term_is_granted_to_nobody() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    stage.faults.next(Verb::Acquire, [Fault::Straggle(5 * SECOND)]);
    let held = node.lease("l").hold(|_| sleep(SECOND)).await.unwrap();
    assert_eq!((held.fence.get(), held.release), (1, Some(Release::Released)));
    for _ in 0..10 {
        assert_eq!(stage.holder("l").await, None);
        sleep(SECOND).await;
    }
    let next = node.lease("l").hold(|_| async {}).await.unwrap();
    assert_eq!(next.fence.get(), 2, "no term was begun in between");
}

/// An attempt that was granted unheard, and forced before it was asked about, costs a new attempt and no candidacy.
#[tokio::test(start_paused = true)]
async fn a_candidate_whose_attempt_is_spent_goes_on_with_a_new_one() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    stage.faults.next(Verb::Acquire, [Fault::LoseReply]);
    let election = node.election("l").lead(|_| async { pending().await }).await.unwrap();
    until("it is granted unheard", || stage.faults.count(Verb::Acquire) == 1).await;
    stage.force("l").await;
    assert_eq!(leads(&election).await.get(), 2);
    assert_eq!(stage.faults.count(Verb::Acquire), 3, "unheard, spent, granted");
}

/// I7: a try that cannot be settled gives back what it may have got.
#[tokio::test(start_paused = true)]
async fn a_single_try_whose_replies_are_lost_leaves_nothing_held() {
    let stage = Stage::new();
    let (a, b) = (stage.node("a").await, stage.sound("b").await);
    stage.faults.always(Verb::Acquire, Fault::LoseReply);
    let tried = a.lease("l").try_once().hold(|_| async {}).await.unwrap_err();
    assert!(tried.to_string().contains("not acquired"), "{tried}");
    assert!(stage.faults.count(Verb::Acquire) > 1, "it tried to learn what became of its bid");
    assert_free_soon(&b, "tried").await;
}

/// B78 for a release: nobody waits for the ttl because an answer was lost, and nobody is told of a loss that was none.
#[tokio::test(start_paused = true)]
async fn a_release_whose_reply_was_lost_is_repeated_and_no_loss() {
    for way in [Fault::LoseReply, Fault::LoseRequest, Fault::Error(leasehold::StoreErrorKind::Unreachable)] {
        for rival in [false, true] {
            let stage = Stage::new();
            let (a, b) = (stage.node("a").await, stage.sound("b").await);
            let rivals = tokio::spawn(async move {
                // With a rival in line the lease is another's before the release is repeated.
                if rival {
                    sleep(MS).await;
                    b.lease("l").hold(|_| sleep(30 * SECOND)).await.map(drop).unwrap();
                }
            });
            stage.faults.next(Verb::Release, [way.clone()]);
            let held = a.lease("l").hold(|_| sleep(SECOND)).await.unwrap();
            assert_eq!((held.lost, held.release), (None, Some(Release::Released)), "{way:?}, rival {rival}");
            rivals.await.unwrap();
        }
    }
}

/// A claim that expired before its release arrived was not released: the answer says so.
#[tokio::test(start_paused = true)]
async fn a_release_that_came_after_the_expiry_is_not_taken_for_one() {
    let stage = Stage::new();
    let a = stage.node("a").await;
    stage.faults.always(Verb::Renew, Fault::LoseRequest);
    stage.faults.next(Verb::Release, vec![Fault::LoseRequest; 3]);
    // Ends a moment before the end of trust; the release gets through only after the store's own expiry.
    stage.faults.next(Verb::Release, [Fault::Slow(3 * SECOND / 2)]);
    let held = a.lease("l").hold(|_| sleep(Duration::from_millis(8_990))).await.unwrap();
    assert!(matches!(held.release, Some(Release::NotHolder(_))), "{:?}", held.release);
}

/// I7, B78: the future of `hold` dropped at each of its awaits. Nobody holds the lease soon after, and no work runs on.
#[tokio::test(start_paused = true)]
async fn a_hold_dropped_at_any_await_leaves_nothing_held() {
    for fault in [Fault::None, Fault::Slow(5 * MS), Fault::Late(5 * MS), Fault::LoseReply] {
        let polls = Stepper::at_every_await(async |stepper| {
            let stage = Stage::new();
            let (a, b) = (stage.node("a").await, stage.sound("b").await);
            stage.faults.next(Verb::Acquire, [fault.clone()]);
            // Longer than anybody waits: work that runs on is found out.
            let running = Running::default();
            let work = running.work(2 * SECOND);
            let done = stepper.run(a.lease("l").hold(work)).await;
            assert_free_soon(&b, &format!("{fault:?} {stepper:?}")).await;
            assert_eq!(running.count(), 0, "{fault:?} {stepper:?}: the work runs on");
            assert_eq!(stage.store.candidates(&super::stage::name_of("l")).await.unwrap(), []);
            done.is_some()
        })
        .await;
        assert!(polls >= 3, "{fault:?}: {polls} polls are no sweep");
    }
}

/// The same while another holds it: the candidate that nobody waits for leaves the line.
#[tokio::test(start_paused = true)]
async fn a_wait_dropped_at_any_await_leaves_the_line() {
    let polls = Stepper::at_every_await(async |stepper| {
        let stage = Stage::new();
        let (a, b) = (stage.node("a").await, stage.sound("b").await);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let holding = tokio::spawn(async move { b.lease("l").hold(|_| ended).await.map(drop) });
        sleep(MS).await;
        let running = Running::default();
        tokio::spawn(async move {
            sleep(50 * MS).await;
            drop(end);
        });
        let done = stepper.run(a.lease("l").hold(running.work(2 * SECOND))).await;
        if done.is_none() {
            sleep(5 * MS).await;
            let line = stage.store.candidates(&super::stage::name_of("l")).await.unwrap();
            assert_eq!(line, [], "{stepper:?}: still in line, while it is held and for nobody");
        }
        holding.await.unwrap().unwrap();
        sleep(20 * MS).await;
        assert_eq!(running.count(), 0, "{stepper:?}");
        assert_eq!(stage.holder("l").await, None, "{stepper:?}");
        assert_eq!(stage.store.candidates(&super::stage::name_of("l")).await.unwrap(), [], "{stepper:?}");
        done.is_some()
    })
    .await;
    assert!(polls >= 3, "{polls} polls are no sweep");
}

/// B78: the caller's timeout swept over the moment of success in small steps. After each try the name is free soon.
#[tokio::test(start_paused = true)]
async fn a_timeout_at_the_moment_of_success_leaves_nothing_held() {
    let trip = 10 * MS;
    for way in [Fault::Slow(trip), Fault::Late(trip)] {
        let stage = Stage::new();
        let (a, b) = (stage.node("a").await, stage.sound("b").await);
        stage.faults.always(Verb::Acquire, way.clone());
        let running = Running::default();
        // Tokio's timers have steps of a millisecond; within one, the order of the two wake-ups is what varies.
        for step in 0..400 {
            let after = Duration::from_micros(100) * step;
            if step % 3 == 0 {
                tokio::task::yield_now().await;
            }
            let held = timeout(after, a.lease("l").ttl(30 * SECOND).hold(running.work(2 * SECOND))).await;
            assert!(held.is_err(), "the work takes longer");
            assert_free_soon(&b, &format!("{way:?} after {after:?}")).await;
            assert_eq!(running.count(), 0, "{way:?} after {after:?}: the work runs on");
        }
        let begun = running.begun();
        assert!(begun > 50 && begun < 350, "{begun} of 400: the sweep went over the moment of success");
    }
}

/// The same for an election that is dropped, or stopped, at any moment of its beginning.
#[tokio::test(start_paused = true)]
async fn an_election_dropped_at_any_moment_leaves_nothing_held() {
    for fault in [Fault::None, Fault::Slow(5 * MS), Fault::Late(5 * MS), Fault::LoseReply] {
        for step in 0..24 {
            let stage = Stage::new();
            let (a, b) = (stage.node("a").await, stage.sound("b").await);
            stage.faults.next(Verb::Acquire, [fault.clone()]);
            let election = a.election("l").lead(|term| async move {
                term.quiescing().await;
                Ok(())
            });
            let election = election.await.unwrap();
            if step % 2 == 0 {
                sleep(step / 2 * MS).await;
                drop(election);
            } else {
                (0..step).for_each(drop);
                for _ in 0..step {
                    tokio::task::yield_now().await;
                }
                assert_eq!(election.stop(SECOND).await, Stopped::Clean, "{fault:?} at step {step}");
            }
            assert_free_soon(&b, &format!("{fault:?} at step {step}")).await;
        }
    }
}

/// I7: whatever is dropped or lost, and with a store that is gone for good, nothing is held longer than its ttl.
#[tokio::test(start_paused = true)]
async fn nothing_stays_held_longer_than_its_ttl() {
    let stage = Stage::new();
    let (a, b) = (stage.node("a").await, stage.sound("b").await);
    stage.faults.next(Verb::Acquire, [Fault::HangAfter]);
    let dropped = timeout(SECOND, a.lease("l").hold(|_| pending::<()>())).await;
    assert!(dropped.is_err());
    stage.faults.everything(&Fault::Hang);
    let begun = Instant::now();
    let held = b.lease("l").hold(|term| async move { term.fence().get() }).await.unwrap();
    assert!(begun.elapsed() <= TTL, "{:?}", begun.elapsed());
    assert!(held.output <= 2);
}

/// I7: an election whose term is unsettled when it is stopped undoes it.
#[tokio::test(start_paused = true)]
async fn a_stop_in_the_middle_of_an_unsettled_attempt_undoes_it() {
    let stage = Stage::new();
    let (a, b) = (stage.node("a").await, stage.sound("b").await);
    stage.faults.always(Verb::Acquire, Fault::LoseReply);
    let election = a.election("l").lead(|_| async { unreachable!("never granted") }).await.unwrap();
    until("it has bid twice", || stage.faults.count(Verb::Acquire) == 2).await;
    assert_eq!(
        stage.holder("l").await.as_deref(),
        Some("a"),
        "held by nobody alive, as far as anybody knows"
    );
    assert_eq!(election.stop(SECOND).await, Stopped::Clean);
    assert_free_soon(&b, "stopped").await;
    drop(a);
}

/// A bid of which nobody knows whether it arrived is looked for again, and a shutdown does not wait long for that.
#[tokio::test(start_paused = true)]
async fn a_shutdown_looks_a_last_time_for_a_bid_that_was_lost() {
    let stage = Stage::new();
    let a = stage.node("a").await;
    stage.faults.always(Verb::Acquire, Fault::LoseRequest);
    let election = a.election("l").lead(|_| async { unreachable!("never granted") }).await.unwrap();
    until("it has bid twice", || stage.faults.count(Verb::Acquire) == 2).await;
    let begun = Instant::now();
    assert_eq!(a.shutdown(5 * SECOND).await, Stopped::Clean);
    let took = begun.elapsed();
    assert!(took >= 250 * MS && took <= 260 * MS, "{took:?}");
    assert!(stage.faults.count(Verb::Inspect) >= 2);
    drop(election);
}

/// What is undone in the ordinary way costs no search: a bid whose answer is known is looked for once or twice.
#[tokio::test(start_paused = true)]
async fn an_undo_whose_bid_was_answered_costs_two_looks_at_most() {
    let stage = Stage::new();
    let a = stage.node("a").await;
    stage.faults.always(Verb::Acquire, Fault::Slow(300 * MS));
    let dropped = timeout(10 * MS, a.lease("l").hold(|_| pending::<()>())).await;
    assert!(dropped.is_err());
    sleep(10 * SECOND).await;
    assert_eq!(stage.holder("l").await, None);
    assert_eq!((stage.faults.count(Verb::Inspect), stage.faults.count(Verb::Release)), (2, 1));
}

/// A leader whose renewal's reply was lost goes on under the same fence.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_of_a_renewal_costs_nothing() {
    let stage = Stage::new();
    let (a, log) = stage.told("a").await;
    let election = a.election("l").lead(|_| async { pending().await }).await.unwrap();
    let fence = leads(&election).await;
    stage.faults.next(Verb::Renew, [Fault::LoseReply, Fault::None, Fault::LoseReply]);
    sleep(60 * SECOND).await;
    assert_eq!(election.leading(), Some(fence));
    assert_eq!((log.count("jeopardy"), log.count("lost")), (2, 0));
}

/// Counts works under way, and works begun.
#[derive(Clone, Default)]
struct Running(Arc<[AtomicU64; 2]>);

impl Running {
    fn count(&self) -> u64 {
        self.0[0].load(Ordering::SeqCst)
    }

    fn begun(&self) -> u64 {
        self.0[1].load(Ordering::SeqCst)
    }

    /// A work of this length.
    fn work(&self, length: Duration) -> impl FnOnce(Term) -> WorkFuture + Send + use<> {
        let running = self.clone();
        move |_| {
            for count in running.0.iter() {
                count.fetch_add(1, Ordering::SeqCst);
            }
            let gone = Gone(running);
            Box::pin(async move {
                let _gone = gone;
                sleep(length).await;
            })
        }
    }
}

type WorkFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

struct Gone(Running);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.0[0].fetch_sub(1, Ordering::SeqCst);
    }
}

/// Half a second is what a caller is promised; what was undone is free within a few round trips.
async fn assert_free_soon(by: &Node, when: &str) {
    let free = timeout(SECOND / 2, by.lease("l").hold(|_| async {})).await;
    assert!(matches!(free, Ok(Ok(_))), "{when}: still held after half a second: {free:?}");
}
