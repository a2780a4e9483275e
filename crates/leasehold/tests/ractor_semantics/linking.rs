//! From which moment on a child belongs to its parent.

use ractor::{ActorStatus, SpawnErr};
use tokio::sync::oneshot;

use super::act::{Act, forever, gated, nothing};
use super::journal::Hook::{Handle, PostStart, PostStop, PreStart};
use super::journal::Step::{Began, Cut, Ended, StateDropped};
use super::journal::{Journal, soon};
use super::player::{Cue, Player};
use super::script::Script;

fn refused(result: Result<Player, SpawnErr>) -> String {
    match result {
        Err(SpawnErr::StartupFailed(error)) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the parent took the child"),
    }
}

/// A child is linked when its `pre_start` is through, and until then its parent's end does not reach it. So a worker
/// that is spawned without waiting for its start is killed on loss through its own cell, and I5 does not rest on the
/// tree alone. Once through, the orphan is refused: its state is dropped, and neither `post_start` nor a message ever runs.
#[tokio::test(start_paused = true)]
async fn a_parents_end_does_not_reach_a_child_in_its_pre_start() {
    let journal = Journal::new();
    let mut renewer = Script::new("renewer", &journal).spawn().await;
    let (open, act) = gated();
    let worker = Script::new("worker", &journal).pre_start(act).spawn_instantly_under(&renewer);
    journal.until("worker", Began(PreStart)).await;
    assert!(renewer.actor.get_children().is_empty());

    renewer.actor.kill();
    renewer.joined().await;
    let bystander = Script::new("bystander", &journal).spawn().await;
    bystander.settle().await;
    assert_eq!(journal.of("worker"), [Began(PreStart)], "it goes on");

    drop(open);
    let start = soon(worker.start).await.expect("no abort");
    assert!(matches!(start, Err(SpawnErr::StartupFailed(_))), "{start:?}");
    assert_eq!(journal.of("worker"), [Began(PreStart), Ended(PreStart), StateDropped]);
    assert_eq!(worker.actor.get_status(), ActorStatus::Stopped);
}

/// A refused child has run its `pre_start`, and nothing runs to undo it. So nothing is acquired in a `pre_start`.
#[tokio::test(start_paused = true)]
async fn a_dead_parent_refuses_a_child_only_after_its_pre_start() {
    let journal = Journal::new();
    let mut renewer = Script::new("renewer", &journal).spawn().await;
    renewer.actor.kill();
    renewer.joined().await;

    let result = Script::new("worker", &journal).try_spawn_under(renewer.actor.get_cell()).await;
    assert_eq!(refused(result), "Supervisor is shutting down");
    assert_eq!(journal.of("worker"), [Began(PreStart), Ended(PreStart), StateDropped]);
}

/// Nor does a parent take a child once it has begun to end, so none can slip in behind the kill of the others.
#[tokio::test(start_paused = true)]
async fn a_parent_in_its_post_stop_refuses_a_child() {
    let journal = Journal::new();
    let (open, act) = gated();
    let mut renewer = Script::new("renewer", &journal).post_stop(act).spawn().await;
    renewer.actor.stop(None);
    journal.until("renewer", Began(PostStop)).await;

    let result = Script::new("worker", &journal).try_spawn_under(renewer.actor.get_cell()).await;
    assert_eq!(refused(result), "Supervisor is shutting down");
    drop(open);
    renewer.joined().await;
}

/// A renewer that awaits its worker's start inside its own handler has the start in its own future: its kill drops
/// both. This is the way to spawn a worker without the gap of the first test, where the renewer can afford to wait.
#[tokio::test(start_paused = true)]
async fn a_start_awaited_in_the_parents_handler_is_dropped_with_it() {
    let journal = Journal::new();
    let mut renewer = Script::new("renewer", &journal).spawn().await;
    let worker = Script::new("worker", &journal).pre_start(forever());
    renewer.cue(
        1,
        Act::new(|me| async move {
            worker.try_spawn_under(me.get_cell()).await?;
            Ok(())
        }),
    );
    journal.until("worker", Began(PreStart)).await;

    renewer.actor.kill();
    renewer.joined().await;
    assert_eq!(journal.of("worker"), [Began(PreStart), Cut(PreStart)]);
    assert!(journal.has("renewer", &Cut(Handle(1))));
}

/// From `post_start` on the child is its parent's.
#[tokio::test(start_paused = true)]
async fn a_child_is_linked_before_its_post_start() {
    let journal = Journal::new();
    let renewer = Script::new("renewer", &journal).spawn().await;
    let mut worker = Script::new("worker", &journal).post_start(forever()).spawn_under(&renewer).await;
    journal.until("worker", Began(PostStart)).await;
    assert_eq!(renewer.actor.get_children(), [worker.actor.get_cell()]);

    renewer.actor.kill();
    worker.joined().await;
    assert!(journal.has("worker", &Cut(PostStart)));
}

/// A worker may have children of its own by the time its `pre_start` is killed; they end with it.
#[tokio::test(start_paused = true)]
async fn children_made_in_a_pre_start_that_is_killed_end_with_it() {
    let journal = Journal::new();
    let renewer = Script::new("renewer", &journal).spawn().await;
    let (born, birth) = oneshot::channel();
    let assistant = Script::new("assistant", &journal);
    let worker = Script::new("worker", &journal)
        .pre_start(Act::new(|me| async move {
            let assistant = assistant.try_spawn_under(me.get_cell()).await?;
            // The test waits for it.
            let _ = born.send(assistant);
            std::future::pending().await
        }))
        .spawn_instantly_under(&renewer);
    let mut assistant = soon(birth).await.expect("the assistant starts");
    assistant.busy(&journal, "assistant", 1, forever()).await;

    worker.actor.kill();
    assistant.joined().await;
    assert!(journal.has("assistant", &Cut(Handle(1))));
    assert!(journal.has("worker", &Cut(PreStart)));
}

/// Messages wait for the end of the start, so a worker's first notices may be sent as soon as there is a cell.
#[tokio::test(start_paused = true)]
async fn messages_sent_during_the_start_are_handled_after_it() {
    let journal = Journal::new();
    let renewer = Script::new("renewer", &journal).spawn().await;
    let mut worker = Script::new("worker", &journal).spawn_instantly_under(&renewer);
    worker.actor.cast(Cue(1, nothing())).expect("an unstarted actor takes messages");

    let join = soon(&mut worker.start).await.expect("no abort").expect("it starts");
    journal.until("worker", Ended(Handle(1))).await;
    let hooks = [PreStart, PostStart, Handle(1)].map(|hook| [Began(hook), Ended(hook)]).concat();
    assert_eq!(journal.of("worker"), hooks);
    worker.actor.kill();
    soon(join).await.expect("no abort");
}
