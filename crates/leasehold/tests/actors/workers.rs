//! Workers that fail, hang, return at once, never end, or spawn.

use super::{
    clockwork::{Clockwork, Habits, Notes, clockwork},
    stage::{Log, MS, SECOND, Stage, TTL, leads, rests},
};
use leasehold::{
    BoxError, Happening, HoldError, LostCause, Position, Predecessor, Stopped, Term, WorkerOutcome,
};
use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// B83: work that fails at once on every replica is given to each of them ever less often; nobody spins.
#[tokio::test(start_paused = true)]
async fn work_that_fails_at_once_everywhere_makes_leadership_rest() {
    type Work = fn(Term) -> std::pin::Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;
    let ways: [(&str, Work); 4] = [
        ("panics", |_| Box::pin(async { panic!("planned: the work panics") })),
        ("panics before its future", |_| panic!("planned: the closure panics")),
        ("fails", |_| Box::pin(async { Err("planned".into()) })),
        ("returns at once", |_| Box::pin(async { Ok(()) })),
    ];
    for (way, work) in ways {
        let stage = Stage::new();
        let mut logs = Vec::new();
        let mut elections = Vec::new();
        for id in ["a", "b", "c"] {
            let (node, log) = stage.told(id).await;
            elections.push(node.election("l").lead(work).await.unwrap());
            logs.push(log);
        }
        sleep(60 * SECOND).await;
        for log in &logs {
            // One after another: 1, 2, 4, 8, 16 and 32 seconds, each at least half of it.
            let terms = log.count("acquired");
            assert!((3..=8).contains(&terms), "{way}: {terms} terms in a minute");
            assert_eq!(log.count("lost"), 0, "{way}: given back, not lost");
            let ended = log.first(|what| {
                matches!(what, Happening::WorkerEnded { outcome } if match way {
                    "returns at once" => *outcome == WorkerOutcome::Finished,
                    _ => matches!(outcome, WorkerOutcome::Failed(text) if text.contains("planned")),
                })
            });
            assert!(ended.is_some(), "{way}: {:?}", log.all());
        }
        let Position::Resting { last } = elections[0].position().borrow().clone() else {
            panic!("{way}: {:?}", elections[0].position())
        };
        assert!(last.is_some(), "{way}: the reason is known");
    }
}

/// B83: the panic of a one-off work is its caller's to know, and costs nobody the lease.
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_work_is_told_and_the_lease_released() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let held = node.lease("l").hold(|_| async { panic!("planned: {}", 42) }).await.map(|held| held.output);
    let Err::<(), _>(HoldError::Panicked { message, .. }) = held else { panic!("{held:?}") };
    assert!(message.contains("planned: 42"), "{message}");
    let next =
        node.lease("l").try_once().hold(|term| async move { term.predecessor().clone() }).await.unwrap();
    assert!(matches!(next.output, Predecessor::Released(_)));
}

/// B87: a worker that cannot start gives its lease back, and another replica has its try.
#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_start_holds_nothing() {
    let stage = Stage::new();
    let (a, log) = stage.told("a").await;
    let b = stage.node("b").await;
    let failing = a.election("l").run(clockwork(Habits::FailsToStart, &Notes::default())).await.unwrap();
    let outcome = rests(&failing).await;
    assert!(
        matches!(&outcome, Some(WorkerOutcome::NotStarted(why)) if why.contains("planned")),
        "{outcome:?}"
    );
    let other = b.election("l").run(clockwork(Habits::Obeys, &Notes::default())).await.unwrap();
    timeout(TTL, leads(&other)).await.expect("another leads");
    sleep(60 * SECOND).await;
    assert!(log.count("acquired") <= 3, "{:?}", log.names());
    assert_eq!(stage.holder("l").await.as_deref(), Some("b"));
}

/// The same when the closure that makes the worker panics.
#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_be_made_holds_nothing() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let make = |_: Term| -> (Clockwork, ()) { panic!("planned: cannot be made") };
    let election = node.election("l").run(make).await.unwrap();
    let outcome = rests(&election).await;
    assert!(matches!(outcome, Some(WorkerOutcome::NotStarted(_))), "{outcome:?}");
    sleep(60 * SECOND).await;
    assert!(log.count("acquired") <= 8);
    assert_eq!(log.count("lost"), 0, "{:?}", log.names());
}

/// B87: a worker that hangs in its start is dropped there, by the loss and by a stop.
#[tokio::test(start_paused = true)]
async fn a_worker_that_hangs_in_its_start_is_dropped_there() {
    for lost in [true, false] {
        let stage = Stage::new();
        let (node, log) = stage.told("a").await;
        let election =
            node.election("l").run(clockwork(Habits::HangsInStart, &Notes::default())).await.unwrap();
        leads(&election).await;
        sleep(60 * SECOND).await;
        assert!(election.leading().is_some(), "a slow start holds up no renewal");
        if lost {
            stage.force("l").await;
            rests(&election).await;
        } else {
            assert_eq!(election.stop(SECOND).await, Stopped::Clean);
        }
        assert_eq!(log.count("overrun"), 0);
        assert_eq!(stage.holder("l").await, None);
    }
}

/// B87: and with a pulse wanted, one that hangs there cannot keep its lease for ever.
#[tokio::test(start_paused = true)]
async fn a_worker_that_hangs_in_its_start_gives_no_pulse() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let hangs = clockwork(Habits::HangsInStart, &Notes::default());
    let election = node.election("l").max_silence(TTL).run(hangs).await.unwrap();
    leads(&election).await;
    let begun = Instant::now();
    rests(&election).await;
    assert!(begun.elapsed() <= 2 * TTL + TTL / 3, "{:?}", begun.elapsed());
    let lost = log.first(|what| matches!(what, Happening::Lost { cause: LostCause::NoPulse }));
    assert!(lost.is_some(), "{:?}", log.names());
}

/// I6: everything that a term spawned is joined before its lease is released, and aborted at its loss.
#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_term_end_with_it_and_before_its_release() {
    for forced in [false, true] {
        let stage = Stage::new();
        let (node, log) = stage.told("a").await;
        let dropped = Arc::new(Mutex::new(Vec::new()));
        let work = {
            let dropped = dropped.clone();
            move |term: Term| async move {
                for _ in 0..100 {
                    let noting = Noting(dropped.clone());
                    let within = term.clone();
                    term.spawn(async move {
                        let _noting = noting;
                        loop {
                            sleep(7 * MS).await;
                            assert!(within.check().is_ok(), "no step of a task after the end");
                        }
                    });
                }
                sleep(if forced { 60 * SECOND } else { SECOND }).await;
                term
            }
        };
        let holding = tokio::spawn(async move { node.lease("l").hold(work).await });
        sleep(SECOND / 2).await;
        if forced {
            stage.force("l").await;
        }
        let held = holding.await.unwrap();
        let dropped = dropped.lock().unwrap().clone();
        assert_eq!(dropped.len(), 100);
        let ended = log.first(|what| matches!(what, Happening::WorkerEnded { .. })).unwrap();
        assert!(dropped.iter().all(|at| *at <= ended));
        match held {
            Ok(held) => {
                assert!(!forced);
                let late = Arc::new(Mutex::new(Vec::new()));
                let noting = Noting(late.clone());
                held.output.spawn(async move {
                    let _noting = noting;
                    pending::<()>().await;
                });
                assert_eq!(
                    late.lock().unwrap().len(),
                    1,
                    "a task for a term that is over is dropped unstarted"
                );
                assert_eq!(held.output.check().unwrap_err().cause, LostCause::Released);
            }
            Err(HoldError::Lost(_)) => assert!(forced),
            Err(error) => panic!("{error}"),
        }
    }
}

struct Noting(Arc<Mutex<Vec<Instant>>>);

impl Drop for Noting {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(Instant::now());
    }
}

/// A worker that never ends keeps its lease for as long as it is renewed.
#[tokio::test(start_paused = true)]
async fn a_worker_that_never_ends_leads_on() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let election =
        node.election("l").ttl(Duration::from_hours(1)).lead(|_| async { pending().await }).await.unwrap();
    let fence = leads(&election).await;
    sleep(Duration::from_hours(8)).await;
    assert_eq!(election.leading(), Some(fence));
    assert_eq!((log.count("acquired"), log.count("jeopardy")), (1, 0));
    assert_eq!(node.shutdown(SECOND).await, Stopped::Clean);
}

/// An observer's panic is its own.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_takes_nothing_down() {
    let stage = Stage::new();
    let log = Log::default();
    let node = leasehold::Node::builder(stage.store.clone())
        .replica("a")
        .clock(stage.clock.clone())
        .observe(|event| panic!("planned: the observer panics at {}", event.what.name()))
        .observe({
            let log = log.clone();
            move |event| log.write(event)
        });
    let node = node.start().await.unwrap();
    let held = node.lease("l").hold(|_| sleep(20 * SECOND)).await.unwrap();
    assert_eq!(held.lost, None);
    assert_eq!(log.names(), ["campaigning", "acquired", "worker-ended", "released"]);
}

/// B83: a panic in a task beside the work is not the work's panic to notice, so the term notices it.
#[tokio::test(start_paused = true)]
async fn a_task_that_panics_ends_its_term() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let held = node.lease("l").hold(|term| async move {
        term.spawn(async { panic!("the index is gone") });
        pending::<()>().await;
    });
    let error = held.await.unwrap_err();
    assert!(
        matches!(&error, HoldError::Panicked { message, .. } if message.contains("the index is gone")),
        "{error}"
    );
    assert_eq!(
        log.names(),
        ["campaigning", "acquired", "worker-ended", "released"],
        "ended in order, and released"
    );
}
