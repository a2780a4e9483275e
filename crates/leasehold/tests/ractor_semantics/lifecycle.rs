//! Every way an actor ends: what of it still runs, and what its supervisor is told.
//!
//! The supervisor is a parent that only writes down what it is told.

use super::act::{Act, blocking, fail, forever, gated, nothing, panic};
use super::journal::Hook::{Handle, PostStart, PostStop, PreStart};
use super::journal::Step::{Began, Cut, Ended, StateDropped};
use super::journal::{Journal, Step, Told, soon};
use super::player::{Cue, Player};
use super::script::Script;

async fn parent_and_child(journal: &Journal) -> (Player, Player) {
    let parent = Script::new("parent", journal).spawn().await;
    let child = Script::new("child", journal).spawn_under(&parent).await;
    (parent, child)
}

/// What the parent was told after the child's start, once the child has ended.
async fn last_told(journal: &Journal, parent: &Player) -> Vec<Told> {
    parent.settle().await;
    let told = journal.told("parent");
    assert_eq!(told.first(), Some(&Told::Started), "{told:?}");
    told[1..].to_vec()
}

/// I4, I5: the work of a lost term ends at its next await, so `kill` is how a worker is ended on loss. And because
/// `post_stop` is skipped, nothing that must happen (a release, above all) is ever put there.
#[tokio::test(start_paused = true)]
async fn kill_drops_the_handler_at_its_await_and_skips_post_stop() {
    let journal = Journal::new();
    let (parent, mut child) = parent_and_child(&journal).await;
    child.busy(&journal, "child", 1, forever()).await;
    child.cue(2, nothing());

    child.actor.kill();
    child.joined().await;

    let told = last_told(&journal, &parent).await;
    // Killed inside its loop, it hands its state over, against what ractor's documentation says of signals.
    assert_eq!(told, [Told::terminated(true, "killed")]);
    let steps = journal.of("child");
    assert_eq!(steps[4..], [Began(Handle(1)), Cut(Handle(1)), StateDropped], "{steps:?}");
}

/// I4 speaks only of workers that are "not blocked": no kill reaches code that does not await. That is why a grant is
/// checked at each use, and why a resource has a fence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_does_not_reach_a_handler_that_blocks_its_thread() {
    let journal = Journal::new();
    let (parent, mut child) = parent_and_child(&journal).await;
    // A parent that has not taken notice of the child's start yet may be held up by its blocking; see `runtimes`.
    journal.until("parent", Step::Told(Told::Started)).await;
    let (unblock, act) = blocking();
    child.busy(&journal, "child", 1, act).await;

    parent.actor.kill();
    soon(parent.join).await.expect("the parent does not wait for its child");
    assert!(!child.join.is_finished());
    assert!(!journal.has("child", &Cut(Handle(1))), "the killed handler is still on its thread");

    drop(unblock);
    child.joined().await;
    // It went on until its next await and no further.
    assert!(journal.has("child", &Cut(Handle(1))));
}

/// A worker that is asked to stop finishes the message it is at. What it was sent after that is lost without notice to
/// the sender, so a worker is quiesced by a message with an answer, and stopped only after the answer.
#[tokio::test(start_paused = true)]
async fn stop_finishes_the_message_at_hand_and_forgets_the_rest() {
    let journal = Journal::new();
    let (parent, mut child) = parent_and_child(&journal).await;
    let (open, act) = gated();
    child.busy(&journal, "child", 1, act).await;
    child.cue(2, nothing());

    child.actor.stop(Some("enough".to_owned()));
    assert!(child.actor.cast(Cue(3, nothing())).is_ok(), "a stopping actor still takes messages");
    drop(open);
    child.joined().await;

    assert_eq!(last_told(&journal, &parent).await, [Told::terminated(true, "enough")]);
    let steps = journal.of("child");
    let rest = [Began(Handle(1)), Ended(Handle(1)), Began(PostStop), Ended(PostStop), StateDropped];
    assert_eq!(steps[4..], rest, "{steps:?}");
}

/// What `drain` promises is kept; leasehold does without it only because of what `tree` pins of a draining child.
#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "this shows what the method does")]
async fn drain_works_the_queue_off_and_refuses_more() {
    let journal = Journal::new();
    let (parent, mut child) = parent_and_child(&journal).await;
    let (open, act) = gated();
    child.busy(&journal, "child", 1, act).await;
    child.cue(2, nothing());

    child.actor.drain().expect("the actor is alive");
    assert!(child.actor.cast(Cue(3, nothing())).is_err());
    drop(open);
    child.joined().await;

    assert_eq!(last_told(&journal, &parent).await, [Told::terminated(true, "Drained")]);
    assert!(journal.has("child", &Ended(Handle(2))));
    assert!(journal.has("child", &Ended(PostStop)));
}

/// A renewer ends itself by returning an error: that must count as a failure, carry the error to the lease holder,
/// and run nothing more. A panic is the same thing.
#[tokio::test(start_paused = true)]
async fn an_error_and_a_panic_end_an_actor_without_post_stop() {
    for (act, error) in [(fail as fn() -> Act, "failed"), (panic, "panicked")] {
        let journal = Journal::new();
        let (parent, mut child) = parent_and_child(&journal).await;
        child.cue(1, act());
        child.cue(2, nothing());
        child.joined().await;

        assert_eq!(last_told(&journal, &parent).await, [Told::failed(error)]);
        assert!(!journal.has("child", &Began(Handle(2))));
        assert!(!journal.has("child", &Began(PostStop)));
        // Unlike after a stop or a kill, the state goes with the task and not with the event.
        assert!(journal.has("child", &StateDropped));
    }
}

/// The task of an actor can be aborted, by a handle or by its runtime's shutdown, and the supervisor still learns.
/// Only since ractor 0.16.5; it is the reason for our version floor.
#[tokio::test(start_paused = true)]
async fn an_aborted_task_is_reported_as_terminated_without_state() {
    let journal = Journal::new();
    let (parent, mut child) = parent_and_child(&journal).await;
    child.busy(&journal, "child", 1, forever()).await;

    child.join.abort();
    assert!(soon(&mut child.join).await.expect_err("it was aborted").is_cancelled());

    assert_eq!(last_told(&journal, &parent).await, [Told::terminated(false, "actor_task_cancelled")]);
    assert!(journal.has("child", &Cut(Handle(1))));
    assert!(journal.has("child", &StateDropped));
    assert!(!journal.has("child", &Began(PostStop)));
}

/// The last thing an actor does can be cut short as well, so its outcome is never waited for without a deadline.
#[tokio::test(start_paused = true)]
async fn kill_cuts_post_start_and_post_stop_short() {
    let journal = Journal::new();
    let parent = Script::new("parent", &journal).spawn().await;

    let mut starting = Script::new("starting", &journal).post_start(forever()).spawn_under(&parent).await;
    journal.until("starting", Began(PostStart)).await;
    starting.actor.kill();
    starting.joined().await;
    assert!(journal.has("starting", &Cut(PostStart)));
    assert!(!journal.has("starting", &Began(PostStop)));

    let mut ending = Script::new("ending", &journal).post_stop(forever()).spawn_under(&parent).await;
    ending.actor.stop(Some("this reason is lost".to_owned()));
    journal.until("ending", Began(PostStop)).await;
    ending.actor.kill();
    ending.joined().await;
    assert!(journal.has("ending", &Cut(PostStop)));

    parent.settle().await;
    let killed = Told::terminated(false, "killed");
    // The first never got as far as to be announced.
    assert_eq!(journal.told("parent"), [killed.clone(), Told::Started, killed]);
}

/// A stop that ends badly is a failure to the supervisor, so a lease holder reads both events as "it has ended" and
/// neither as "it ended well".
#[tokio::test(start_paused = true)]
async fn a_failing_post_stop_turns_a_stop_into_a_failure() {
    for (act, error) in [(fail as fn() -> Act, "failed"), (panic, "panicked")] {
        let journal = Journal::new();
        let parent = Script::new("parent", &journal).spawn().await;
        let mut child = Script::new("child", &journal).post_stop(act()).spawn_under(&parent).await;
        child.actor.stop(None);
        child.joined().await;
        assert_eq!(last_told(&journal, &parent).await, [Told::failed(error)]);
        let steps = journal.of("child");
        assert_eq!(steps[..2], [Began(PreStart), Ended(PreStart)], "{steps:?}");
    }
}
