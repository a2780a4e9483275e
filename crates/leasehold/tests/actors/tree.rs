//! The tree: whatever ends a link of it ends the work, and nothing is released that was not joined.

use super::stage::{Grave, MS, SECOND, Stage, TTL, leads, rests, until};
use leasehold::{
    Clock, Happening, LostCause, Moment, Node, Notice, Position, Standing, Stopped, Term, TokioClock, Worker,
};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, ActorStatus};
use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::time::{Instant, sleep, timeout};

/// A worker that shows where it hangs in the tree.
struct Leaf {
    shown: Arc<Mutex<Option<ActorCell>>>,
    grave: Grave,
}

enum LeafMsg {
    Work,
    Told,
}

#[cfg(feature = "cluster")]
impl ractor::Message for LeafMsg {}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Leaf {
    type Msg = LeafMsg;
    type State = Term;
    type Arguments = Term;

    async fn pre_start(&self, me: ActorRef<LeafMsg>, term: Term) -> Result<Term, ActorProcessingErr> {
        me.cast(LeafMsg::Work)?;
        Ok(term)
    }

    async fn handle(
        &self,
        me: ActorRef<LeafMsg>,
        msg: LeafMsg,
        term: &mut Term,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            LeafMsg::Work => {
                *self.shown.lock().unwrap() = Some(me.get_cell());
                let _dropped = self.grave.digger(term);
                pending::<()>().await;
            }
            LeafMsg::Told => {}
        }
        Ok(())
    }
}

impl Worker for Leaf {
    fn notice(_: Notice) -> LeafMsg {
        LeafMsg::Told
    }
}

/// How far above the worker.
const LINKS: [&str; 5] = ["worker", "renewer", "holder", "election", "root"];

fn ancestor(leaf: &ActorCell, links: usize) -> ActorCell {
    (0..links).fold(leaf.clone(), |cell, _| cell.try_get_supervisor().unwrap())
}

/// I4, I5, B84: the worker goes at once with whatever ends above it, its checks fail from then on, and its lease is
/// taken by nobody before its ttl is over, unless its holder lives to release it.
#[tokio::test(start_paused = true)]
async fn the_end_of_any_link_above_the_work_ends_the_work_at_once() {
    for (links, name) in LINKS.into_iter().enumerate() {
        for kill in [true, false] {
            let stage = Stage::new();
            let (a, log) = stage.told("a").await;
            let b = stage.sound("b").await;
            let (shown, grave) = (Arc::new(Mutex::new(None)), Grave::default());
            let make = {
                let (shown, grave) = (shown.clone(), grave.clone());
                move |term| (Leaf { shown: shown.clone(), grave: grave.clone() }, term)
            };
            let mut election = a.election("l").run(make).await.unwrap();
            let first = leads(&election).await;
            until("it works", || shown.lock().unwrap().is_some()).await;
            let leaf = shown.lock().unwrap().clone().unwrap();
            let rival = b.election("l").lead(|_| async { pending().await }).await.unwrap();
            sleep(SECOND).await;

            let target = ancestor(&leaf, links);
            let begun = Instant::now();
            if kill {
                target.kill();
            } else {
                target.stop(None);
            }
            if links == 0 && !kill {
                // An actor finishes the message in hand before it stops: this one never does.
                sleep(SECOND).await;
                assert!(grave.is_empty());
                continue;
            }
            target.wait(None).await.unwrap();
            leaf.wait(None).await.unwrap();
            let (at, trusted) = grave.only();
            assert!(at - begun <= MS, "{name}: the work outlived it by {:?}", at - begun);
            // A worker that is killed by somebody else is still covered at that moment; by its own tree, never.
            assert!(!trusted || links <= 1 || !kill || links == 0, "{name}");
            sleep(MS).await;

            match name {
                // The holder lives: the work is joined, and the lease is released.
                "worker" | "renewer" => {
                    assert_eq!(log.count("released"), 1, "{name}: {:?}", log.names());
                    timeout(SECOND, leads(&rival)).await.expect("released");
                }
                // Nobody could say that the work has been joined: the lease expires.
                _ => {
                    assert_eq!(log.count("released"), 0, "{name}");
                    assert_eq!(rival.leading(), None, "{name}");
                    let fence = timeout(TTL, leads(&rival)).await.expect("expired");
                    assert!(fence > first);
                }
            }
            if name != "worker" {
                assert_eq!(log.count("lost"), 1, "{name}: {:?}", log.names());
                let told =
                    log.first(|what| matches!(what, Happening::Lost { cause: LostCause::RenewerEnded }));
                assert!(told.unwrap() - begun <= 2 * MS, "{name}");
            }
            let mut last = None;
            while let Ok(Some(stood)) = timeout(MS, election.standings().next()).await {
                last = Some(stood.standing);
            }
            assert!(matches!(last, Some(Standing::Lost { .. })), "{name}: {last:?}");
            if links >= 3 {
                assert_eq!(*election.position().borrow(), Position::Stopped, "{name}");
                assert!(
                    timeout(SECOND, election.standings().next()).await.unwrap().is_none(),
                    "the stream ends"
                );
                if name == "root" {
                    timeout(SECOND, a.stopped()).await.expect("whatever ended it");
                    assert_eq!(a.shutdown(SECOND).await, Stopped::Killed, "nothing was released");
                }
            } else {
                // Back into the line, and in its turn again.
                assert_eq!(rival.stop(SECOND).await, Stopped::Clean);
                let again = leads(&election).await;
                assert!(again > first);
            }
        }
    }
}

/// A clock that can be made to panic once.
#[derive(Debug, Clone)]
struct Brittle(TokioClock, Arc<AtomicBool>);

impl Clock for Brittle {
    fn now(&self) -> Moment {
        assert!(!self.1.swap(false, Ordering::SeqCst), "planned: the clock panics");
        self.0.now()
    }
}

/// I5: the renewer's panic is the loss, and the election goes on.
#[tokio::test(start_paused = true)]
async fn a_panicking_renewer_ends_its_worker_and_not_the_election() {
    let stage = Stage::new();
    let breaks = Arc::new(AtomicBool::new(false));
    let clock = Brittle(TokioClock::new(), breaks.clone());
    let node = Node::builder(stage.store.clone()).clock(Arc::new(clock)).start().await.unwrap();
    let grave = Grave::default();
    let election = node.election("l").lead(grave.work());
    let election = election.await.unwrap();
    let first = leads(&election).await;
    sleep(MS).await;
    // Of all that runs now, the renewer is the next to look at the clock.
    breaks.store(true, Ordering::SeqCst);
    rests(&election).await;
    assert!(!breaks.load(Ordering::SeqCst), "it did panic");
    assert_eq!(grave.count(), 1);
    assert!(leads(&election).await > first);
}

/// I5, I6: a shutdown that is out of time kills the tree from its root; nothing is released by that.
#[tokio::test(start_paused = true)]
async fn a_shutdown_out_of_time_kills_the_work_and_releases_nothing() {
    let stage = Stage::new();
    let (a, log) = stage.told("a").await;
    let b = stage.sound("b").await;
    let (shown, grave) = (Arc::new(Mutex::new(None)), Grave::default());
    let make = {
        let (shown, grave) = (shown.clone(), grave.clone());
        move |term| (Leaf { shown: shown.clone(), grave: grave.clone() }, term)
    };
    let election = a.election("l").run(make).await.unwrap();
    leads(&election).await;
    until("it works", || shown.lock().unwrap().is_some()).await;
    let acquired = Instant::now();
    assert_eq!(a.shutdown(std::time::Duration::ZERO).await, Stopped::Killed);
    let leaf = shown.lock().unwrap().clone().unwrap();
    assert_eq!(leaf.get_status(), ActorStatus::Stopped);
    assert!(!grave.is_empty());
    assert_eq!(log.count("released"), 0);
    let fate =
        b.lease("l").hold(|term| async move { term.predecessor().fate().as_str() }).await.unwrap().output;
    assert_eq!(fate, "expired");
    assert!(acquired.elapsed() >= TTL - 20 * MS, "{:?}", acquired.elapsed());
}

/// I5: what the lifecycle guard of ractor does not reach: a worker that is still starting is no child yet, and the
/// tasks of a term are no actors.
#[tokio::test(start_paused = true)]
async fn a_kill_reaches_a_worker_that_is_starting_and_the_tasks_of_a_term() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let (shown, leaf) = (Arc::new(Mutex::new(None)), Grave::default());
    let make = {
        let (shown, leaf) = (shown.clone(), leaf.clone());
        move |term| (Leaf { shown: shown.clone(), grave: leaf.clone() }, term)
    };
    let (starting, tasks) = (Grave::default(), Grave::default());
    let _leaves = node.election("leaf").run(make).await.unwrap();
    let _hangs = node.election("starting").run({
        let starting = starting.clone();
        move |term| (HangsInStart(starting.clone()), term)
    });
    let _hangs = _hangs.await.unwrap();
    let _spawns = node.election("tasks").lead({
        let tasks = tasks.clone();
        move |term| {
            let gone = tasks.digger(&term);
            term.spawn(async move {
                let _gone = gone;
                pending::<()>().await;
            });
            pending()
        }
    });
    let _spawns = _spawns.await.unwrap();
    until("it works", || shown.lock().unwrap().is_some()).await;
    sleep(SECOND).await;
    assert!(leaf.is_empty() && starting.is_empty() && tasks.is_empty());
    let worker = shown.lock().unwrap().clone().unwrap();
    ancestor(&worker, 4).kill();
    sleep(MS).await;
    assert_eq!((leaf.count(), starting.count(), tasks.count()), (1, 1, 1));
}

struct HangsInStart(Grave);

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for HangsInStart {
    type Msg = LeafMsg;
    type State = ();
    type Arguments = Term;

    async fn pre_start(&self, _: ActorRef<LeafMsg>, term: Term) -> Result<(), ActorProcessingErr> {
        let _dropped = self.0.digger(&term);
        pending().await
    }
}

impl Worker for HangsInStart {
    fn notice(_: Notice) -> LeafMsg {
        LeafMsg::Told
    }
}

/// What the dropped node had is given back in order, though nobody waits for that.
#[tokio::test(start_paused = true)]
async fn a_dropped_node_ends_the_work_of_its_last_election() {
    let stage = Stage::new();
    let (a, log) = stage.told("a").await;
    let grave = Grave::default();
    let election = a.election("l").lead(grave.work());
    let election = election.await.unwrap();
    leads(&election).await;
    drop((a, election));
    sleep(10 * SECOND).await;
    assert_eq!(grave.count(), 1);
    assert_eq!(
        log.names(),
        ["campaigning", "acquired", "quiescing", "worker-ended", "released"],
        "asked first, and killed at the end of its time"
    );
}
