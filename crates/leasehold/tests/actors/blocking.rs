//! Workers that block their threads, in real time: short, and waited for by events.

use super::{
    ears::{PATIENCE, SHORT, node, overrun},
    stage::{MS, SECOND},
};
use leasehold::{
    Force, Happening, LostCause, MemoryStore, Notice, Position, Release, SharedStore, Stopped, Term, Worker,
    WorkerOutcome,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};

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
    // Nobody may read from now on that it leads, however long its worker takes.
    let mut position = election.position();
    let ending = position.wait_for(|position| matches!(position, Position::Ending(_)));
    assert!(timeout(PATIENCE, ending).await.is_ok());
    let lost = tokio::task::block_in_place(|| ears.hear(|what| matches!(what, Happening::Lost { .. })));
    assert_eq!(lost.what, Happening::Lost { cause: LostCause::Overrun });
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
    assert_eq!(timeout(PATIENCE, election.stop(SECOND)).await.unwrap(), Stopped::Clean);
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
    assert_eq!(timeout(PATIENCE, election.stop(SECOND)).await.unwrap(), Stopped::Clean);
}
