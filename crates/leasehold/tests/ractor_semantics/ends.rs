//! What outlives an actor, and what does not end one.

use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, ActorStatus, RactorErr};
use tokio::sync::oneshot;

use super::act::{Act, forever, gated};
use super::journal::Hook::{Handle, PostStop};
use super::journal::Step::{Began, Cut, Ended, StateDropped};
use super::journal::{Journal, Step, Told, soon};
use super::script::Script;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A kill reaches what the actor awaits, not what it has spawned. So a term has a `spawn` of its own, whose tasks are
/// aborted on loss, and that is what workers are told to use.
#[tokio::test(start_paused = true)]
async fn a_spawned_task_outlives_the_actor_that_spawned_it() {
    let journal = Journal::new();
    let mut worker = Script::new("worker", &journal).spawn().await;
    let (open, gate) = oneshot::channel::<()>();
    let (handle, task) = oneshot::channel();
    let act = Act::new(|_| async {
        let _ = handle.send(tokio::spawn(gate));
        std::future::pending().await
    });
    worker.busy(&journal, "worker", 1, act).await;
    let task = soon(task).await.expect("the worker spawns it");

    worker.actor.kill();
    worker.joined().await;
    assert!(!task.is_finished());
    open.send(()).expect("the task still waits for this");
    soon(task).await.expect("no abort").expect("it ran to its end");
}

/// The state of a killed or stopped actor is moved into its supervisor's event and lives until that is handled:
/// tasks that end with the state run on meanwhile. So tasks are aborted explicitly and never by a drop of the state,
/// and our supervisors drop the state they are handed first of all.
#[tokio::test(start_paused = true)]
async fn the_state_of_a_killed_actor_waits_for_its_supervisor() {
    let journal = Journal::new();
    let renewer = Script::new("renewer", &journal).spawn().await;
    let mut worker = Script::new("worker", &journal).spawn_under(&renewer).await;
    let (open, act) = gated();
    renewer.busy(&journal, "renewer", 1, act).await;

    worker.actor.kill();
    worker.joined().await;
    assert_eq!(worker.actor.get_status(), ActorStatus::Stopped);
    assert!(!journal.has("worker", &StateDropped));

    drop(open);
    journal.until("worker", StateDropped).await;
}

/// An actor is not owned by its references. So our public handles end what they stand for in their own `Drop`.
#[tokio::test(start_paused = true)]
async fn an_actor_outlives_all_references_to_it() {
    let journal = Journal::new();
    let mut worker = Script::new("worker", &journal).spawn().await;
    let join = {
        drop(worker.actor);
        &mut worker.join
    };
    assert!(tokio::time::timeout(YEAR, join).await.is_err());
    assert!(!journal.has("worker", &StateDropped));
}

/// Only the first `stop` counts, and `stop_and_wait` takes a second for a dead actor: it returns at once. It is on our
/// list of disallowed methods; to stop is one thing and to wait another.
#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "this shows why the method is disallowed")]
async fn stop_and_wait_does_not_wait_after_somebody_elses_stop() {
    let journal = Journal::new();
    let (open, act) = gated();
    let mut worker = Script::new("worker", &journal).post_stop(act).spawn().await;
    worker.actor.stop(Some("first".to_owned()));

    let at_once = soon(worker.actor.stop_and_wait(None, None)).await;
    assert!(matches!(at_once, Err(RactorErr::Messaging(_))), "{at_once:?}");
    assert!(!worker.join.is_finished());

    journal.until("worker", Began(PostStop)).await;
    drop(open);
    worker.joined().await;
    assert!(journal.has("worker", &Ended(PostStop)));
}

/// `kill` may be said as often as one likes, to the dead as well, and `kill_and_wait` waits each time.
#[tokio::test(start_paused = true)]
async fn kill_is_idempotent() {
    let journal = Journal::new();
    let mut worker = Script::new("worker", &journal).spawn().await;
    worker.busy(&journal, "worker", 1, forever()).await;
    worker.actor.kill();
    worker.actor.kill();
    for _ in 0..2 {
        soon(worker.actor.kill_and_wait(None))
            .await
            .expect("it waits for the end that the first kill brought");
        assert!(journal.has("worker", &Cut(Handle(1))));
    }
    worker.joined().await;
    worker.actor.kill();
}

/// Names are free again before the `post_stop` of their owner is through, so a name never means that one is alone.
/// They are global to the process, too: leasehold names no actor.
#[tokio::test(start_paused = true)]
async fn a_name_is_free_before_its_owners_post_stop_is_through() {
    let journal = Journal::new();
    let name = Some("ractor-semantics-name".to_owned());
    let (open, act) = gated();
    let mut first = Script::new("first", &journal).post_stop(act).spawn_as(name.clone()).await.expect("free");
    assert!(Script::new("second", &journal).spawn_as(name.clone()).await.is_err(), "taken");

    first.actor.stop(None);
    journal.until("first", Began(PostStop)).await;
    let mut third =
        Script::new("third", &journal).spawn_as(name).await.expect("free, though the first lives");
    assert!(!first.join.is_finished());
    drop(open);
    first.joined().await;
    third.actor.kill();
    third.joined().await;
}

/// What an actor does that says nothing about supervision.
struct Unaware;

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Unaware {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, _: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// By default the end of any child, a good one as well, stops the parent. Every actor of ours that has children says
/// what it does instead; a user's worker that does not ends its term with its first child.
#[tokio::test(start_paused = true)]
async fn by_default_an_actor_stops_when_a_child_ends() {
    let journal = Journal::new();
    let top = Script::new("top", &journal).spawn().await;
    let (parent, join) =
        Actor::spawn_linked(None, Unaware, (), top.actor.get_cell()).await.expect("it starts");
    let child = Script::new("child", &journal).try_spawn_under(parent.get_cell()).await.expect("it starts");
    child.settle().await;
    child.actor.stop(None);
    soon(join).await.expect("no abort");

    journal.until("top", Step::Told(Told::Terminated { state: true, reason: None })).await;
}
