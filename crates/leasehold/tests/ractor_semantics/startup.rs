//! What `kill`, `stop`, errors and aborts do to an actor that has not started yet.

use ractor::{ActorStatus, SpawnErr};

use super::act::{Act, fail, forever, gated, panic};
use super::journal::Hook::{PostStart, PostStop, PreStart};
use super::journal::Step::{Began, Cut, Ended};
use super::journal::{Journal, Told, soon};
use super::player::Starting;
use super::script::Script;

/// The error with which `pre_start` failed.
async fn refusal(start: &mut Starting) -> String {
    match soon(&mut start.start).await.expect("the task that starts it is not aborted") {
        Err(SpawnErr::StartupFailed(error)) => error.to_string(),
        other => panic!("it should not have started: {other:?}"),
    }
}

/// A worker that is still in its `pre_start` when its term is lost has to be killed through its own cell, because it
/// is not linked yet (see `linking`). This shows that the cell is good for that from the first moment on.
#[tokio::test(start_paused = true)]
async fn kill_drops_pre_start_at_its_await() {
    let journal = Journal::new();
    let parent = Script::new("parent", &journal).spawn().await;
    let mut child = Script::new("child", &journal).pre_start(forever()).spawn_instantly_under(&parent);
    journal.until("child", Began(PreStart)).await;

    child.actor.kill();

    assert_eq!(refusal(&mut child).await, "Actor killed during startup");
    assert_eq!(journal.of("child"), [Began(PreStart), Cut(PreStart)]);
    assert_eq!(child.actor.get_status(), ActorStatus::Stopped);
    parent.settle().await;
    assert_eq!(journal.told("parent"), [], "the spawner learns, the supervisor does not");
}

/// As above, for a loss between the call that spawns the worker and the first poll of its task.
#[tokio::test(start_paused = true)]
async fn kill_before_the_first_poll_keeps_pre_start_from_running() {
    let journal = Journal::new();
    let parent = Script::new("parent", &journal).spawn().await;
    let mut child = Script::new("child", &journal).spawn_instantly_under(&parent);
    // Nothing was awaited in between, and this is the only thread.
    child.actor.kill();

    assert_eq!(refusal(&mut child).await, "Actor killed during startup");
    assert_eq!(journal.of("child"), []);
    soon(child.actor.wait(None)).await.expect("it waits without a deadline of its own");
}

/// The end of the start's task is as good as a kill, and `wait` returns for those who only have the cell.
#[tokio::test(start_paused = true)]
async fn an_aborted_start_ends_the_actor() {
    let journal = Journal::new();
    let parent = Script::new("parent", &journal).spawn().await;
    let child = Script::new("child", &journal).pre_start(forever()).spawn_instantly_under(&parent);
    journal.until("child", Began(PreStart)).await;

    child.start.abort();
    soon(child.actor.wait(None)).await.expect("it waits without a deadline of its own");
    assert_eq!(journal.of("child"), [Began(PreStart), Cut(PreStart)]);
}

/// A start is not called off by `stop`: on loss a starting worker is killed.
#[tokio::test(start_paused = true)]
async fn stop_waits_for_pre_start_and_post_start() {
    let journal = Journal::new();
    let parent = Script::new("parent", &journal).spawn().await;
    let (open, act) = gated();
    let child = Script::new("child", &journal).pre_start(act).spawn_instantly_under(&parent);
    journal.until("child", Began(PreStart)).await;

    child.actor.stop(None);
    parent.settle().await;
    assert!(!child.start.is_finished());
    drop(open);
    let join = soon(child.start).await.expect("no abort").expect("it starts in spite of the stop");
    soon(join).await.expect("no abort");

    for hook in [PreStart, PostStart, PostStop] {
        assert!(journal.has("child", &Ended(hook)), "{hook:?}");
    }
    parent.settle().await;
    let ended = Told::Terminated { state: true, reason: None };
    assert_eq!(journal.told("parent"), [Told::Started, ended]);
}

/// A worker that cannot start is an `Err` to whoever spawned it and no event, so the renewer looks at that result.
#[tokio::test(start_paused = true)]
async fn a_failed_pre_start_is_the_spawners_to_notice() {
    for (act, error) in [(fail as fn() -> Act, "failed"), (panic, "panicked")] {
        let journal = Journal::new();
        let parent = Script::new("parent", &journal).spawn().await;
        let mut child = Script::new("child", &journal).pre_start(act()).spawn_instantly_under(&parent);
        assert_eq!(refusal(&mut child).await, error);
        assert!(!journal.has("child", &Began(PostStop)));
        parent.settle().await;
        assert_eq!(journal.told("parent"), []);
    }
}
