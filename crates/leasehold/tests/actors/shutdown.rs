//! Ending: bounded, in order, honest about what the store confirmed, and nothing stays behind.

use super::stage::{MS, SECOND, Stage, leads, name_of, until};
use leasehold::{HoldError, LeaseStore, Position, StartError, Stopped, StoreErrorKind};
use leasehold_core::Verb;
use leasehold_testkit::{Fault, Stepper};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout},
};

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Tasks that were aborted, or are at their last statement, need a few polls to be gone.
async fn back_to(baseline: usize, what: &str) {
    for _ in 0..1_000 {
        if tasks() <= baseline {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{what}: {} tasks, {baseline} before", tasks());
}

/// B69, I11: holder, candidate and seeker end within the bound that they were given, whatever the store does, and no
/// task of theirs stays.
#[tokio::test(start_paused = true)]
async fn a_shutdown_is_bounded_and_leaves_no_task_whatever_the_store_does() {
    let ways = [
        Fault::None,
        Fault::Hang,
        Fault::HangAfter,
        Fault::Panic,
        Fault::LoseReply,
        Fault::Error(StoreErrorKind::Unreachable),
    ];
    for way in ways {
        for within in [SECOND, 8 * SECOND, 60 * SECOND] {
            let stage = Stage::new();
            let baseline = tasks();
            let node = stage.node("a").await;
            let leader = node.election("x").lead(|_| async { pending().await }).await.unwrap();
            leads(&leader).await;
            let waiter = node.election("x").lead(|_| async { pending().await }).await.unwrap();
            let holding = tokio::spawn({
                let node = node.clone();
                async move { node.lease("y").hold(|_| pending::<()>()).await }
            });
            let seeking = tokio::spawn({
                let node = node.clone();
                async move { node.lease("x").hold(|_| pending::<()>()).await }
            });
            sleep(SECOND).await;
            stage.faults.everything(&way);
            let begun = Instant::now();
            let stopped = node.shutdown(within).await;
            let took = begun.elapsed();
            assert!(took <= within + 2 * MS, "{way:?}: {took:?} of {within:?}");
            let healthy = way == Fault::None;
            assert_eq!(stopped == Stopped::Clean, healthy, "{way:?} within {within:?}: {stopped:?}");
            for ended in [holding, seeking] {
                let ended = timeout(SECOND, ended).await.unwrap().unwrap();
                assert!(matches!(ended, Err(HoldError::Stopped { .. } | HoldError::Lost(_))), "{ended:?}");
            }
            for election in [leader, waiter] {
                assert_eq!(*election.position().borrow(), Position::Stopped, "{way:?}");
                drop(election);
            }
            drop(node);
            back_to(baseline, &format!("{way:?} within {within:?}")).await;
            if healthy {
                assert_eq!((stage.holder("x").await, stage.holder("y").await), (None, None));
                assert!(
                    stage.store.candidates(&name_of("x")).await.unwrap().is_empty(),
                    "nobody is enlisted"
                );
            }
        }
    }
}

/// B69: the same for one election, which says whether the store confirmed it.
#[tokio::test(start_paused = true)]
async fn the_stop_of_an_election_is_bounded_and_says_whether_it_was_confirmed() {
    let ends = [
        (Fault::None, Stopped::Clean),
        (Fault::Hang, Stopped::Unconfirmed),
        (Fault::LoseRequest, Stopped::Unconfirmed),
    ];
    for (way, end) in ends {
        let stage = Stage::new();
        let node = stage.node("a").await;
        let election = node.election("l").lead(|_| async { pending().await }).await.unwrap();
        leads(&election).await;
        stage.faults.everything(&way);
        let begun = Instant::now();
        assert_eq!(election.stop(SECOND).await, end, "{way:?}");
        // The worker's second, and at most five for the release.
        assert!(begun.elapsed() <= 6 * SECOND + 5 * MS, "{way:?}: {:?}", begun.elapsed());
        assert_eq!(stage.holder("l").await.is_none(), end == Stopped::Clean);
    }
}

/// The worker is asked first, and has its time.
#[tokio::test(start_paused = true)]
async fn a_worker_that_quiesces_finishes_before_its_lease_is_released() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let finished = Arc::new(AtomicBool::new(false));
    let election = node.election("l").lead({
        let finished = finished.clone();
        move |term| {
            let finished = finished.clone();
            async move {
                let within = term.quiescing().await;
                assert!(within > SECOND, "{within:?}");
                sleep(SECOND).await;
                assert!(term.check().is_ok(), "renewed to the end");
                finished.store(true, Ordering::SeqCst);
                Ok(())
            }
        }
    });
    let election = election.await.unwrap();
    leads(&election).await;
    let begun = Instant::now();
    assert_eq!(node.shutdown(10 * SECOND).await, Stopped::Clean);
    assert!(finished.load(Ordering::SeqCst));
    assert!(begun.elapsed() <= SECOND + 5 * MS, "nobody waits for time that the worker does not need");
    assert_eq!(stage.holder("l").await, None);
}

/// Two shutdowns at once, as by a signal and by the program: neither cuts the other's workers short.
#[tokio::test(start_paused = true)]
async fn a_second_shutdown_cuts_nothing_short_and_a_later_one_finds_nothing_to_do() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let finished = Arc::new(AtomicBool::new(false));
    let election = node.election("l").lead({
        let finished = finished.clone();
        move |term| {
            let finished = finished.clone();
            async move {
                term.quiescing().await;
                sleep(3 * SECOND).await;
                finished.store(true, Ordering::SeqCst);
                Ok(())
            }
        }
    });
    let election = election.await.unwrap();
    leads(&election).await;
    let (first, second) = tokio::join!(node.shutdown(10 * SECOND), node.shutdown(10 * SECOND));
    assert_eq!((first, second), (Stopped::Clean, Stopped::Clean));
    assert!(finished.load(Ordering::SeqCst), "the worker had its time");
    assert_eq!(stage.holder("l").await, None);
    assert_eq!(timeout(SECOND, node.shutdown(10 * SECOND)).await, Ok(Stopped::Clean));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_on_a_node_that_was_shut_down() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    assert_eq!(node.shutdown(SECOND).await, Stopped::Clean);
    let requests = stage.faults.total();
    let held = timeout(SECOND, node.lease("l").hold(|_| async {})).await.unwrap();
    assert!(matches!(held, Err(HoldError::Stopped { .. })), "{held:?}");
    let led = node.election("l").lead(|_| async { Ok(()) }).await;
    assert!(matches!(led, Err(leasehold::ElectError::Start(StartError::Stopped))), "{led:?}");
    assert!(node.fenced("r", "l", ()).await.is_err());
    sleep(60 * SECOND).await;
    assert_eq!(stage.faults.total(), requests, "the store is left alone");
}

/// The last handle is the end, in the background: released, not left to expire.
#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_ends_everything() {
    let stage = Stage::new();
    let baseline = tasks();
    let node = stage.node("a").await;
    let election = node.election("l").lead(|term| async move {
        term.quiescing().await;
        Ok(())
    });
    let election = election.await.unwrap();
    leads(&election).await;
    drop(node);
    sleep(60 * SECOND).await;
    assert_eq!(stage.holder("l").await.as_deref(), Some("a"), "an election is a handle, too");
    drop(election);
    sleep(SECOND).await;
    assert_eq!(stage.holder("l").await, None);
    back_to(baseline, "dropped").await;
}

/// A shutdown in the middle of a bid: the bid's claim is undone before the last call to the store.
#[tokio::test(start_paused = true)]
async fn a_shutdown_in_the_middle_of_an_acquire_leaves_nothing_held() {
    for late in [1, 100, 900] {
        for fault in [Fault::Late(late * MS), Fault::Slow(late * MS)] {
            let stage = Stage::new();
            let node = stage.node("a").await;
            stage.faults.always(Verb::Acquire, fault.clone());
            let seeking = tokio::spawn({
                let node = node.clone();
                async move { node.lease("l").hold(|_| pending::<()>()).await }
            });
            let election = node.election("m").lead(|_| async { pending().await }).await.unwrap();
            tokio::task::yield_now().await;
            until("both bid", || stage.faults.count(Verb::Acquire) == 2).await;
            let stopped = node.shutdown(5 * SECOND).await;
            assert_eq!(stopped, Stopped::Clean, "{fault:?}");
            assert!(matches!(seeking.await.unwrap(), Err(HoldError::Stopped { .. })));
            drop(election);
            for name in ["l", "m"] {
                let record = stage.memory.inspect(&name_of(name)).await.unwrap();
                assert_eq!(record.claim(), None, "{fault:?}");
            }
        }
    }
}

/// The last calls are awaited, all of them: also the last but one.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_every_call_that_is_under_way() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    // Both bids are carried out after nobody wants them any more; then each is looked for and undone, at its own pace.
    stage.faults.always(Verb::Acquire, Fault::Slow(500 * MS));
    let looks = [Fault::None, Fault::None, Fault::Slow(100 * MS), Fault::Slow(400 * MS)];
    stage.faults.next(Verb::Inspect, looks);
    for name in ["l", "m"] {
        let dropped = timeout(10 * MS, node.lease(name).hold(|_| pending::<()>())).await;
        assert!(dropped.is_err());
    }
    assert_eq!(node.shutdown(10 * SECOND).await, Stopped::Clean);
    assert_eq!((stage.holder("l").await, stage.holder("m").await), (None, None));
    assert_eq!(stage.faults.met(), 4);
}

/// I11: a start that nobody waits for starts nothing that stays.
#[tokio::test(start_paused = true)]
async fn a_start_dropped_at_any_await_leaves_no_task() {
    let polls = Stepper::at_every_await(async |stepper| {
        let stage = Stage::new();
        let baseline = tasks();
        let node = stepper.run(stage.node("a")).await;
        let done = node.is_some();
        if let Some(node) = &node {
            let election = stepper.run(node.election("l").lead(|_| async { pending().await })).await;
            drop(election);
        }
        drop(node);
        sleep(10 * SECOND).await;
        assert_eq!(stage.holder("l").await, None);
        back_to(baseline, &format!("{stepper:?}")).await;
        done && stepper.run(sleep(MS)).await.is_some()
    })
    .await;
    assert!(polls >= 2, "{polls} polls are no sweep");
}

/// Two ends asked for: the worker has the shorter time of both.
#[tokio::test(start_paused = true)]
async fn of_two_times_to_quiesce_the_shorter_counts() {
    for (first, second) in [(2, 30), (30, 2)] {
        let stage = Stage::new();
        let node = stage.node("a").await;
        let election = node.election("l").lead(|_| async { pending().await }).await.unwrap();
        leads(&election).await;
        let begun = Instant::now();
        election.step_down(first * SECOND, "first");
        election.step_down(second * SECOND, "second");
        until("it has stepped down", || election.leading().is_none()).await;
        let took = begun.elapsed();
        assert!(took >= 2 * SECOND && took <= 2 * SECOND + 10 * MS, "{took:?}");
    }
}

/// A shutdown that begins while an election is being started either refuses it or ends it: it never overlooks it.
#[tokio::test(start_paused = true)]
async fn a_start_in_the_middle_of_a_shutdown_is_refused_or_ended() {
    let (mut refused, mut ended) = (0, 0);
    for step in 0..12 {
        let stage = Stage::new();
        let node = stage.node("a").await;
        // Its bid is long in coming: a shutdown that overlooks the election is over before.
        stage.faults.always(Verb::Acquire, Fault::Slow(300 * MS));
        let starting = tokio::spawn({
            let node = node.clone();
            async move {
                for _ in 0..step % 4 {
                    tokio::task::yield_now().await;
                }
                node.election("l").lead(|_| async { pending().await }).await
            }
        });
        for _ in 0..step {
            tokio::task::yield_now().await;
        }
        let stopped = node.shutdown(10 * SECOND).await;
        assert_eq!(stopped, Stopped::Clean, "at step {step}");
        let requests = stage.faults.total();
        let started = starting.await.unwrap();
        match &started {
            Ok(election) => {
                assert_eq!(*election.position().borrow(), Position::Stopped, "at step {step}");
                ended += 1;
            }
            Err(_) => refused += 1,
        }
        sleep(SECOND).await;
        assert_eq!(stage.holder("l").await, None, "at step {step}");
        assert_eq!(stage.faults.total(), requests, "at step {step}: nothing is asked after the end");
    }
    assert!(refused > 0 && ended > 0, "{refused} refused, {ended} ended: the sweep went over the moment");
}

/// Told of the end of a node, and of no other moment; and the future keeps nothing alive.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_node_is_told() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let (stopped, again) = (node.stopped(), node.stopped());
    let mut stopped = std::pin::pin!(stopped);
    assert!(timeout(60 * SECOND, stopped.as_mut()).await.is_err(), "it lives");
    drop(node);
    timeout(SECOND, stopped).await.unwrap();
    timeout(SECOND, again).await.unwrap();
}

/// A worker that does not let go of its thread keeps its election from ending in time, and nobody is told otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_in_spite_of_a_blocked_worker_is_never_called_clean() {
    let node = leasehold::Node::connect("memory:").await.unwrap();
    let (free, freed) = std::sync::mpsc::channel::<()>();
    let freed = Arc::new(std::sync::Mutex::new(freed));
    let (block, mut blocks) = tokio::sync::mpsc::unbounded_channel();
    let election = node.election("l").ttl(SECOND).join_within(20 * MS).lead(move |_| {
        let (freed, block) = (freed.clone(), block.clone());
        async move {
            block.send(()).unwrap();
            let _ = freed.lock().unwrap().recv();
            pending().await
        }
    });
    let election = election.await.unwrap();
    timeout(10 * SECOND, blocks.recv()).await.unwrap().unwrap();
    assert_ne!(election.stop(std::time::Duration::ZERO).await, Stopped::Clean);
    free.send(()).unwrap();
    let _ = node.shutdown(10 * SECOND).await;
}
