//! Runtimes that are blocked, apart, or gone, and clocks that jump. Real time where threads block.

use super::{
    ears::{Ears, PATIENCE, SHORT, node, runtime},
    stage::{Grave, MS, SECOND, Stage, TTL, until},
};
use leasehold::{Happening, HoldError, LostCause, ManualClock, MemoryStore, Moment, Node, SharedStore, Term};
use std::{
    future::pending,
    sync::{Arc, Mutex, mpsc},
};
use tokio::time::{sleep, timeout};

/// B05, on a runtime that work and renewals share: while it is blocked nobody renews, and the first question
/// afterwards is answered with the truth.
#[test]
fn a_blocked_runtime_loses_its_lease_and_its_first_check_says_so() {
    for threads in [0, 1] {
        let outcome = runtime(threads).block_on(async move {
            let store: SharedStore = Arc::new(MemoryStore::default());
            let (a, _) = node(&store, "a").await;
            let work = |term: Term| async move {
                std::thread::sleep(3 * SHORT);
                term.check().map(|_| ())
            };
            let held = tokio::spawn(async move { a.lease("l").ttl(SHORT).hold(work).await });
            timeout(PATIENCE, held).await.unwrap().unwrap()
        });
        match outcome {
            Ok(held) => {
                assert_eq!(held.output.unwrap_err().cause, LostCause::Expired, "{threads} threads");
                assert!(held.lost.is_some(), "{threads} threads");
            }
            Err(error) => assert!(matches!(error, HoldError::Lost(_)), "{threads} threads: {error}"),
        }
    }
}

/// B05, with renewals on a runtime of their own: work that gives way keeps its lease, work that blocks loses it in
/// bounded time, though its lease could be renewed for ever; and the loss is told while it still blocks.
#[test]
fn with_renewals_apart_a_blocked_worker_loses_its_lease_and_a_busy_one_does_not() {
    let apart = runtime(1);
    for threads in [0, 1] {
        for blocks in [true, false] {
            let (observer, ears) = Ears::open();
            let (free, freed) = mpsc::channel::<()>();
            let on = apart.handle().clone();
            let app = std::thread::spawn(move || {
                runtime(threads).block_on(async move {
                    let store: SharedStore = Arc::new(MemoryStore::default());
                    let node = Node::builder(store).renew_on(on).observe(observer).start().await.unwrap();
                    let work = move |term: Term| async move {
                        if blocks {
                            let _ = freed.recv_timeout(PATIENCE);
                        } else {
                            // Busy, in steps: as long as each is shorter than the silence that is allowed.
                            for _ in 0..60 {
                                std::thread::sleep(SHORT / 12);
                                sleep(MS).await;
                            }
                        }
                        term.check().map(|_| ())
                    };
                    let held = tokio::spawn({
                        let node = node.clone();
                        async move { node.lease("l").ttl(SHORT).hold(work).await }
                    });
                    let held = timeout(PATIENCE, held).await.unwrap().unwrap();
                    let _ = node.shutdown(SECOND).await;
                    held
                })
            });
            if blocks {
                let lost = ears.hear(|what| matches!(what, Happening::Lost { .. }));
                let Happening::Lost { cause } = lost.what else { unreachable!() };
                assert_eq!(cause, LostCause::NoPulse);
                free.send(()).unwrap();
                match app.join().unwrap() {
                    Ok(held) => assert_eq!(held.output.unwrap_err().cause, LostCause::NoPulse),
                    Err(error) => assert!(matches!(error, HoldError::Lost(_)), "{error}"),
                }
            } else {
                let held = app.join().unwrap().unwrap();
                assert!(held.output.is_ok() && held.lost.is_none(), "{:?}", held.lost);
                assert!(!ears.rest().contains(&"lost"));
            }
        }
    }
}

/// I5: the end of the runtime that renews is the end of the work.
#[test]
fn the_end_of_the_renewing_runtime_ends_the_work() {
    let apart = runtime(1);
    let on = apart.handle().clone();
    let app = runtime(2);
    let (began, begun) = mpsc::channel();
    let (gone, dropped) = mpsc::channel();
    struct Tells(mpsc::Sender<Term>, Term);
    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(self.1.clone());
        }
    }
    let (holding, node) = app.block_on(async {
        let node = Node::builder(Arc::new(MemoryStore::default())).renew_on(on).start().await.unwrap();
        let work = move |term: Term| async move {
            let task = Tells(gone.clone(), term.clone());
            let running = term.clone();
            running.spawn(async move {
                let _tells = task;
                pending::<()>().await;
            });
            let _tells = Tells(gone, term);
            began.send(()).unwrap();
            pending::<()>().await;
        };
        let holding = tokio::spawn({
            let node = node.clone();
            async move { node.lease("l").hold(work).await }
        });
        (holding, node)
    });
    begun.recv_timeout(PATIENCE).unwrap();
    apart.shutdown_timeout(PATIENCE);
    let term = dropped.recv_timeout(PATIENCE).unwrap();
    assert!(dropped.recv_timeout(PATIENCE).is_ok(), "the work, and the task of its term");
    let untrusted = async {
        while term.check().is_ok() {
            sleep(MS).await;
        }
    };
    app.block_on(async {
        timeout(PATIENCE, untrusted).await.expect("whoever else has the term is told, too");
    });
    assert_eq!(term.check().unwrap_err().cause, LostCause::RenewerEnded);
    let ended = app.block_on(async { timeout(PATIENCE, holding).await.unwrap().unwrap() });
    assert!(matches!(ended, Err(HoldError::Stopped { .. } | HoldError::Lost(_))), "{ended:?}");
    // Without its runtime a node can do nothing, and says so; nothing hangs.
    let stopped = app.block_on(async { timeout(PATIENCE, node.shutdown(SECOND)).await.unwrap() });
    assert_eq!(stopped, leasehold::Stopped::Killed);
    let late = app.block_on(async { timeout(PATIENCE, node.lease("l").hold(|_| async {})).await.unwrap() });
    assert!(matches!(late, Err(HoldError::Stopped { .. })), "{late:?}");
}

/// The end of the runtime that works is the end of the work, and its lease is released.
#[test]
fn the_end_of_the_working_runtime_releases_the_lease() {
    let apart = runtime(2);
    let app = runtime(1);
    let store: SharedStore = Arc::new(MemoryStore::default());
    let (observer, ears) = Ears::open();
    let on = apart.handle().clone();
    let shared = store.clone();
    let (node, election) = app.block_on(async {
        let node = Node::builder(shared).renew_on(on).observe(observer).start().await.unwrap();
        let election = node.election("l").lead(|_| async { pending().await }).await.unwrap();
        (node, election)
    });
    ears.hear(|what| matches!(what, Happening::Acquired { .. }));
    app.shutdown_timeout(PATIENCE);
    ears.hear(|what| matches!(what, Happening::Released { .. }));
    // Wherever it leads again, it can start no worker, and leaves it at that, ever longer.
    let other = runtime(1);
    other.block_on(async {
        drop(election);
        let stopped = timeout(PATIENCE, node.shutdown(5 * SECOND)).await.unwrap();
        assert_eq!(stopped, leasehold::Stopped::Clean);
    });
    drop(store);
}

/// B03: a clock that runs during suspend jumps over it, while every timer stood still. The first check after it is
/// false, and the work is dropped soon, though its timers have long to go.
#[tokio::test(start_paused = true)]
async fn the_first_check_after_a_jump_of_the_clock_is_false() {
    let clock = ManualClock::starting_at(Moment::ORIGIN.after(SECOND));
    let stage = Stage::new();
    let node = Node::builder(stage.store.clone()).clock(Arc::new(clock.clone())).start().await.unwrap();
    let grave = Grave::default();
    let shown = Arc::new(Mutex::new(None));
    let election = node.election("l").ttl(6 * 60 * TTL).lead({
        let (grave, shown) = (grave.clone(), shown.clone());
        move |term| {
            let (gone, shown) = (grave.digger(&term), shown.clone());
            async move {
                *shown.lock().unwrap() = Some(term);
                let _gone = gone;
                pending().await
            }
        }
    });
    let election = election.await.unwrap();
    until("it works", || shown.lock().unwrap().is_some()).await;
    let term = shown.lock().unwrap().clone().unwrap();
    sleep(MS).await;
    assert!(term.check().is_ok());
    // Suspended for five ttls.
    clock.advance(5 * 6 * 60 * TTL);
    assert_eq!(term.check().unwrap_err().cause, LostCause::Expired);
    assert!(grave.is_empty(), "nobody has noticed yet");
    let resumed = tokio::time::Instant::now();
    until("it was dropped", || grave.count() == 1).await;
    assert!(resumed.elapsed() <= SECOND + 5 * MS, "{:?}", resumed.elapsed());
    assert!(election.leading().is_none_or(|fence| fence > term.fence()));
}
