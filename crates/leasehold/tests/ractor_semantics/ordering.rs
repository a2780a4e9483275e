//! Which of kill, stop, supervision and messages comes first.
//!
//! An actor looks at its four ports in this order each time it is free: signal, stop, supervision, messages. Each
//! port keeps its own order, and there is none between them.

use super::act::{forever, gated, nothing};
use super::journal::Hook::{Handle, PostStop};
use super::journal::Step::{Began, Cut, Ended};
use super::journal::{Journal, Step, Told};
use super::script::Script;

/// A child's end overtakes every message sent before it, the one that introduces the child included. So an actor of
/// ours spawns its children in its own handler and notes them before it awaits anything else; it never learns of a
/// child by message. Shown for all orders of three messages and three children's ends.
#[tokio::test(start_paused = true)]
async fn supervision_overtakes_all_messages_and_each_keeps_its_order() {
    for messages_at in (0_u8..64).filter(|set| set.count_ones() == 3) {
        let journal = Journal::new();
        let mut parent = Script::new("parent", &journal).spawn().await;
        let mut children = Vec::new();
        for _ in 0..3 {
            children.push(Script::new("child", &journal).spawn_under(&parent).await);
        }
        // Once their starts have been told, what follows is their ends.
        for child in &children {
            child.settle().await;
        }
        parent.settle().await;
        let before = journal.of("parent").len();

        let (open, act) = gated();
        parent.busy(&journal, "parent", 0, act).await;
        for at in 0..6 {
            if messages_at & (1 << at) != 0 {
                parent.cue(at, nothing());
            } else {
                let mut child = children.pop().expect("as many as there are ends");
                child.actor.stop(Some(format!("at {at}")));
                child.joined().await;
            }
        }
        drop(open);
        parent.settle().await;

        let positions = |message| (0..6).filter(move |at| (messages_at & (1 << at) != 0) == message);
        let mut expected = vec![Began(Handle(0)), Ended(Handle(0))];
        expected.extend(positions(false).map(|at| Step::Told(Told::terminated(true, &format!("at {at}")))));
        expected.extend(positions(true).flat_map(|at| [Began(Handle(at)), Ended(Handle(at))]));
        // The last message may still be at its end.
        let steps = journal.of("parent");
        assert_eq!(steps[before..before + expected.len()], expected, "{messages_at:#08b}");
        parent.actor.kill();
        parent.joined().await;
    }
}

/// A stop that is queued keeps a supervisor from being told of anything, even of what happened before it. So what is
/// to happen at a child's end never depends on its supervisor noticing.
#[tokio::test(start_paused = true)]
async fn stop_overtakes_supervision_and_what_was_not_told_is_lost() {
    let journal = Journal::new();
    let mut parent = Script::new("parent", &journal).spawn().await;
    let mut child = Script::new("child", &journal).spawn_under(&parent).await;
    child.settle().await;
    parent.settle().await;
    let (open, act) = gated();
    parent.busy(&journal, "parent", 1, act).await;
    child.actor.kill();
    child.joined().await;
    parent.actor.stop(None);
    drop(open);
    parent.joined().await;

    assert!(journal.has("parent", &Ended(PostStop)));
    assert_eq!(journal.told("parent"), [Told::Started], "the end of the child was never told");
}

/// A supervisor is told when it is free, so a handler of ours that supervises awaits nothing slow, and a worker's
/// death at its renewer's end does not wait for anybody to be told.
#[tokio::test(start_paused = true)]
async fn a_busy_supervisor_is_told_late() {
    let journal = Journal::new();
    let parent = Script::new("parent", &journal).spawn().await;
    let mut child = Script::new("child", &journal).spawn_under(&parent).await;
    child.settle().await;
    parent.settle().await;
    let (open, act) = gated();
    parent.busy(&journal, "parent", 1, act).await;
    child.actor.kill();
    child.joined().await;
    assert_eq!(journal.told("parent"), [Told::Started]);

    drop(open);
    parent.settle().await;
    assert_eq!(journal.told("parent"), [Told::Started, Told::terminated(true, "killed")]);
}

/// A kill needs no turn in a queue: it overtakes a stop and whatever else there is. I4's last resort.
#[tokio::test(start_paused = true)]
async fn kill_overtakes_stop() {
    let journal = Journal::new();
    let mut actor = Script::new("actor", &journal).spawn().await;
    actor.busy(&journal, "actor", 1, forever()).await;
    actor.cue(2, nothing());
    actor.actor.stop(None);
    actor.actor.kill();
    actor.joined().await;

    assert!(journal.has("actor", &Cut(Handle(1))));
    assert!(!journal.has("actor", &Began(Handle(2))));
    assert!(!journal.has("actor", &Began(PostStop)));
}
