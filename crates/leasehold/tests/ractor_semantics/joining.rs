//! What "it has ended" means, and for whom. I6 (no early release before the worker has been joined) is built on this.

use std::sync::mpsc;
use std::time::Duration;

use ractor::ActorStatus;
use tokio::task::yield_now;

use super::act::{Act, blocking, fail, forever};
use super::journal::Hook::Handle;
use super::journal::Step::{Began, Cut, StateDropped};
use super::journal::{Journal, Step, Told, soon};
use super::player::Player;
use super::script::Script;

/// Far beyond what a test takes; keeps a broken one from blocking its thread for ever.
const GIVE_UP: Duration = Duration::from_secs(60);

/// Something whose drop takes until the test lets it end.
struct SlowDrop {
    journal: Journal,
    release: mpsc::Receiver<()>,
}

impl SlowDrop {
    fn new(journal: &Journal) -> (mpsc::Sender<()>, Self) {
        let (released, release) = mpsc::channel();
        (released, Self { journal: journal.clone(), release })
    }
}

impl Drop for SlowDrop {
    fn drop(&mut self) {
        self.journal.write("slow drop", Began(Handle(0)));
        // Released, or given up; either way it is over.
        let _ = self.release.recv_timeout(GIVE_UP);
        self.journal.write("slow drop", Step::Ended(Handle(0)));
    }
}

/// Waits until the worker and its supervisors have taken notice of each other, so that none of them is waiting for
/// the very thread that is about to be blocked.
async fn settled(players: &[&Player]) {
    for player in players.iter().rev() {
        player.settle().await;
    }
}

/// The lease holder can learn of its renewer's failure while the worker still runs: the kill is sent before the
/// event, but the worker ends only when it next awaits. A holder that released the lease on the event alone would
/// break I6; it joins the worker first.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_supervisor_is_told_of_a_childs_end_while_the_grandchild_still_runs() {
    let journal = Journal::new();
    let holder = Script::new("holder", &journal).spawn().await;
    let mut renewer = Script::new("renewer", &journal).spawn_under(&holder).await;
    let mut worker = Script::new("worker", &journal).spawn_under(&renewer).await;
    settled(&[&holder, &renewer, &worker]).await;
    let (unblock, act) = blocking();
    worker.busy(&journal, "worker", 1, act).await;

    renewer.cue(1, fail());
    journal.until("holder", Step::Told(Told::failed("failed"))).await;
    renewer.joined().await;
    assert_ne!(worker.actor.get_status(), ActorStatus::Stopped);
    assert!(!journal.has("worker", &Cut(Handle(1))), "the worker still runs");

    drop(unblock);
    worker.joined().await;
    assert!(journal.has("worker", &Cut(Handle(1))));
}

/// The gate of I6: whichever way the worker's end comes about, neither its `JoinHandle` nor `wait` returns before its
/// handler's future has been dropped to the last field.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn joining_and_waiting_outlast_the_drop_of_the_handlers_future() {
    for by_parent in [false, true] {
        let journal = Journal::new();
        let renewer = Script::new("renewer", &journal).spawn().await;
        let mut worker = Script::new("worker", &journal).spawn_under(&renewer).await;
        settled(&[&renewer, &worker]).await;
        let (release, slow) = SlowDrop::new(&journal);
        let act = Act::new(|_| async move {
            let _slow = slow;
            std::future::pending().await
        });
        worker.busy(&journal, "worker", 1, act).await;

        if by_parent { &renewer } else { &worker }.actor.kill();
        journal.until("slow drop", Began(Handle(0))).await;
        let cell = worker.actor.get_cell();
        let ended = journal.clone();
        let waiting = tokio::spawn(async move {
            soon(cell.wait(None)).await.expect("it waits without a deadline of its own");
            assert!(ended.has("slow drop", &Step::Ended(Handle(0))));
        });
        // Gives the waiter every chance to be wrong.
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(!waiting.is_finished());
        assert!(!worker.join.is_finished());
        assert_ne!(worker.actor.get_status(), ActorStatus::Stopped);

        release.send(()).expect("the drop waits for this");
        worker.joined().await;
        assert!(journal.has("slow drop", &Step::Ended(Handle(0))));
        soon(waiting).await.expect("wait returned after the drop");
    }
}

/// For the state, `wait` and the status `Stopped` are not enough: a worker that failed is `Stopped` before its state
/// has been dropped, and only its `JoinHandle` outlasts that. So the join of I6 is the `JoinHandle`.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn waiting_does_not_outlast_the_drop_of_a_failed_actors_state() {
    let journal = Journal::new();
    let (release, slow) = SlowDrop::new(&journal);
    let mut worker = Script::new("worker", &journal).on_state_drop(move || drop(slow)).spawn().await;
    worker.cue(1, fail());
    soon(worker.actor.wait(None)).await.expect("it waits without a deadline of its own");

    assert_eq!(worker.actor.get_status(), ActorStatus::Stopped);
    assert!(!journal.has("worker", &StateDropped));
    assert!(!worker.join.is_finished());

    release.send(()).expect("the drop waits for this");
    worker.joined().await;
    assert!(journal.has("worker", &StateDropped));
}

/// Several may wait for one end (the holder, a handle's owner, a node's shutdown), and some only come when it is over.
#[tokio::test(start_paused = true)]
async fn every_waiter_is_woken_and_late_ones_do_not_wait() {
    let journal = Journal::new();
    let mut worker = Script::new("worker", &journal).spawn().await;
    worker.busy(&journal, "worker", 1, forever()).await;
    let waiting: Vec<_> = std::iter::repeat_with(|| {
        let cell = worker.actor.get_cell();
        tokio::spawn(
            async move { soon(cell.wait(None)).await.expect("it waits without a deadline of its own") },
        )
    })
    .take(3)
    .collect();
    yield_now().await;

    worker.actor.kill();
    for waiter in waiting {
        waiter.await.expect("woken");
    }
    worker.joined().await;
    for _ in 0..3 {
        soon(worker.actor.wait(None)).await.expect("it waits without a deadline of its own");
    }
}
