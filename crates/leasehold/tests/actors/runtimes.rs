//! Blocked threads, runtimes of their own, and clocks that jump. Real time where threads block: short, and waited for
//! by events.

use super::stage::{Grave, MS, SECOND, Stage, TTL, until};
use leasehold::{
    Event, Force, Happening, HoldError, LostCause, ManualClock, MemoryStore, Moment, Node, Notice, Position,
    Release, SharedStore, Term, Worker, WorkerOutcome,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};
use tokio::{
    runtime::{Builder, Runtime},
    time::{sleep, timeout},
};

const SHORT: Duration = Duration::from_millis(300);
/// No event of these tests takes this long, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a node tells, to be waited for from any thread.
#[derive(Clone)]
struct Ears(Arc<Mutex<mpsc::Receiver<Event>>>);

impl Ears {
    fn open() -> (impl Fn(&Event) + Send + Sync + 'static, Self) {
        let (tell, told) = mpsc::channel();
        (move |event: &Event| drop(tell.send(event.clone())), Self(Arc::new(Mutex::new(told))))
    }

    /// Blocks until it is told; the events before it are passed over.
    fn hear(&self, wanted: impl Fn(&Happening) -> bool) -> Event {
        let told = self.0.lock().unwrap();
        loop {
            let event = told.recv_timeout(PATIENCE).expect("told in time");
            if wanted(&event.what) {
                return event;
            }
        }
    }

    /// What is left to hear, after everything has ended.
    fn rest(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().try_iter().map(|event| event.what.name()).collect()
    }
}

fn runtime(threads: usize) -> Runtime {
    let mut builder = if threads == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.worker_threads(threads.max(1)).enable_all().build().unwrap()
}

async fn node(store: &SharedStore, id: &str) -> (Node, Ears) {
    let (observer, ears) = Ears::open();
    (Node::builder(store.clone()).replica(id).observe(observer).start().await.unwrap(), ears)
}

fn overrun(what: &Happening) -> bool {
    matches!(what, Happening::Overrun { .. })
}

/// I6: code that blocks its thread cannot be stopped. Its lease is not released while it runs, however it is asked; it
/// expires, and the next holder is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_blocks_overruns_and_its_lease_is_never_released_early() {
    let store: SharedStore = Arc::new(MemoryStore::default());
    let ((a, ears), (b, _)) = (node(&store, "a").await, node(&store, "b").await);
    let (began, begun) = mpsc::channel();
    let (free, freed) = mpsc::channel::<()>();
    let freed = Arc::new(Mutex::new(freed));
    let election = a.election("l").ttl(SHORT).join_within(SHORT / 3).lead(move |term| {
        let (began, freed) = (began.clone(), freed.clone());
        async move {
            let _ = began.send(());
            let _ = freed.lock().unwrap().recv_timeout(PATIENCE);
            // What it does next must not happen: this is the first thing that it asks.
            Err(term.check().unwrap_err().into())
        }
    });
    let election = election.await.unwrap();
    tokio::task::block_in_place(|| begun.recv_timeout(PATIENCE)).unwrap();
    election.step_down(SHORT / 3, "testing");
    tokio::task::block_in_place(|| ears.hear(overrun));
    // Still at work. Only the expiry gives the lease to another.
    let next = b.lease("l").hold(|term| async move { term.predecessor().fate().as_str() });
    assert_eq!(timeout(PATIENCE, next).await.unwrap().unwrap().output, "expired");
    free.send(()).unwrap();
    let ended =
        tokio::task::block_in_place(|| ears.hear(|what| matches!(what, Happening::WorkerEnded { .. })));
    assert!(!matches!(ended.what, Happening::WorkerEnded { outcome: WorkerOutcome::Finished }));
    assert!(timeout(PATIENCE, election.stop(SECOND)).await.is_ok());
    let rest = ears.rest();
    assert!(!rest.contains(&"released"), "{rest:?}");
}

/// I6: a task of the term that blocks its thread counts like the worker itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_task_that_blocks_after_its_worker_ended_overruns_too() {
    let store: SharedStore = Arc::new(MemoryStore::default());
    let ((a, ears), (b, _)) = (node(&store, "a").await, node(&store, "b").await);
    let (free, freed) = mpsc::channel::<()>();
    let holding = tokio::spawn({
        let a = a.clone();
        let work = move |term: Term| async move {
            let began = Arc::new(AtomicBool::new(false));
            let begins = began.clone();
            term.spawn(async move {
                begins.store(true, Ordering::SeqCst);
                let _ = freed.recv_timeout(PATIENCE);
            });
            // Not woken by the task: what a thread that blocks has just woken, no other thread takes from it.
            while !began.load(Ordering::SeqCst) {
                sleep(MS).await;
            }
            "done"
        };
        async move { a.lease("l").ttl(SHORT).join_within(SHORT / 3).hold(work).await }
    });
    tokio::task::block_in_place(|| ears.hear(overrun));
    let next = b.lease("l").hold(|term| async move { term.predecessor().fate().as_str() });
    assert_eq!(timeout(PATIENCE, next).await.unwrap().unwrap().output, "expired");
    free.send(()).unwrap();
    let held = timeout(PATIENCE, holding).await.unwrap().unwrap().unwrap();
    assert_eq!(held.output, "done");
    assert!(held.lost.is_some() && !matches!(held.release, Some(Release::Released)), "{held:?}");
}

/// A worker that is asked to end at once, before it was even made, does not work on until somebody notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_whose_time_is_over_before_it_was_made_is_dropped_as_soon_as_it_is() {
    let store: SharedStore = Arc::new(MemoryStore::default());
    let (a, ears) = node(&store, "a").await;
    let (making, made) = mpsc::channel();
    let (free, freed) = mpsc::channel::<()>();
    let freed = Mutex::new(freed);
    let make = move |term| {
        making.send(()).unwrap();
        let _ = freed.lock().unwrap().recv_timeout(PATIENCE);
        (Waits, term)
    };
    let election = a.election("l").join_within(PATIENCE).run(make).await.unwrap();
    tokio::task::block_in_place(|| made.recv_timeout(PATIENCE)).unwrap();
    election.step_down(Duration::ZERO, "testing");
    tokio::task::block_in_place(|| ears.hear(|what| matches!(what, Happening::Quiescing { .. })));
    free.send(()).unwrap();
    // Not only by the overrun, which is long in coming.
    let ended = tokio::task::block_in_place(|| {
        ears.hear(|what| matches!(what, Happening::WorkerEnded { .. } | Happening::Overrun { .. }))
    });
    assert!(matches!(ended.what, Happening::WorkerEnded { .. }), "{ended:?}");
    assert!(timeout(PATIENCE, election.stop(SECOND)).await.unwrap());
}

struct Waits;

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Waits {
    type Msg = Waiting;
    type State = Term;
    type Arguments = Term;

    async fn pre_start(&self, _: ActorRef<Waiting>, term: Term) -> Result<Term, ActorProcessingErr> {
        Ok(term)
    }
}

struct Waiting;

#[cfg(feature = "cluster")]
impl ractor::Message for Waiting {}

impl Worker for Waits {
    fn notice(_: Notice) -> Waiting {
        Waiting
    }
}

/// B30: a loss is told at once, also while a worker that blocks is being waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_loss_is_told_while_a_blocking_worker_is_waited_for() {
    let store: SharedStore = Arc::new(MemoryStore::default());
    let (a, ears) = node(&store, "a").await;
    let (began, begun) = mpsc::channel();
    let (free, freed) = mpsc::channel::<()>();
    let freed = Arc::new(Mutex::new(freed));
    let election = a.election("l").ttl(SHORT).join_within(PATIENCE).lead(move |_| {
        let (began, freed) = (began.clone(), freed.clone());
        async move {
            let _ = began.send(());
            let _ = freed.lock().unwrap().recv_timeout(PATIENCE);
            Ok(())
        }
    });
    let election = election.await.unwrap();
    tokio::task::block_in_place(|| begun.recv_timeout(PATIENCE)).unwrap();
    let fence = election.leading();
    election.step_down(MS, "testing");
    tokio::task::block_in_place(|| ears.hear(|what| matches!(what, Happening::Quiescing { .. })));
    // Past its time to quiesce, and renewed until it has ended: now somebody ends the claim from outside.
    sleep(SHORT).await;
    let (name, by) = ("l".try_into().unwrap(), "operator".try_into().unwrap());
    assert!(matches!(store.force_release(&name, &by, "testing").await, Force::Forced { .. }));
    let lost = tokio::task::block_in_place(|| {
        ears.hear(|what| matches!(what, Happening::Lost { .. } | Happening::WorkerEnded { .. }))
    });
    assert!(matches!(lost.what, Happening::Lost { cause: LostCause::NotHolder(_) }), "{lost:?}");
    let mut position = election.position();
    let ending = position.wait_for(|position| matches!(position, Position::Ending(of) if Some(*of) == fence));
    assert!(timeout(PATIENCE, ending).await.unwrap().is_ok(), "nobody reads that it leads");
    free.send(()).unwrap();
    assert!(timeout(PATIENCE, election.stop(SECOND)).await.unwrap());
}

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
