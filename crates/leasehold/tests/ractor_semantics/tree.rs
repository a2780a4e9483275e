//! A parent's end is its children's end, and who is exempt.

use super::act::{fail, forever, gated, panic};
use super::journal::Hook::{Handle, PostStop};
use super::journal::Step::{Began, Cut, Ended, StateDropped};
use super::journal::{Journal, soon};
use super::player::Player;
use super::script::Script;

const YEAR: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 3600);

#[derive(Clone, Copy, Debug)]
enum End {
    Stop,
    Fail,
    Panic,
    Kill,
    Abort,
}

impl End {
    const ALL: [Self; 5] = [Self::Stop, Self::Fail, Self::Panic, Self::Kill, Self::Abort];

    /// Brings `player`'s end about and waits for it.
    async fn come_to(self, player: Player) {
        match self {
            Self::Stop => player.actor.stop(None),
            Self::Fail => player.cue(9, fail()),
            Self::Panic => player.cue(9, panic()),
            Self::Kill => player.actor.kill(),
            Self::Abort => player.join.abort(),
        }
        // An error is the abort's.
        let _ = soon(player.join).await;
    }
}

/// **I5**, the safety argument itself: whatever ends the renewer ends the worker and the worker's own children, at
/// their next await, with no mailbox in between. A graceful end of the renewer is no exception.
#[tokio::test(start_paused = true)]
async fn every_end_of_a_parent_kills_its_descendants_without_post_stop() {
    for end in End::ALL {
        let journal = Journal::new();
        let renewer = Script::new("renewer", &journal).spawn().await;
        let mut worker = Script::new("worker", &journal).spawn_under(&renewer).await;
        let mut assistant = Script::new("assistant", &journal).spawn_under(&worker).await;
        worker.busy(&journal, "worker", 1, forever()).await;
        assistant.busy(&journal, "assistant", 1, forever()).await;

        end.come_to(renewer).await;
        worker.joined().await;
        assistant.joined().await;

        for who in ["worker", "assistant"] {
            let steps = journal.of(who);
            // Nobody is left to be told, so the state is dropped before the end is complete and not handed on.
            assert_eq!(
                steps[4..],
                [Began(Handle(1)), Cut(Handle(1)), StateDropped],
                "{end:?}, {who}: {steps:?}"
            );
        }
    }
}

/// I5 holds for a worker that waits for its next message, too.
#[tokio::test(start_paused = true)]
async fn every_end_of_a_parent_kills_an_idle_child() {
    for end in End::ALL {
        let journal = Journal::new();
        let renewer = Script::new("renewer", &journal).spawn().await;
        let mut worker = Script::new("worker", &journal).spawn_under(&renewer).await;
        end.come_to(renewer).await;
        worker.joined().await;
        assert!(!journal.has("worker", &Began(PostStop)), "{end:?}");
    }
}

/// A draining child is exempt from its parent's kill. Therefore no worker is ever drained (the method is on our list
/// of disallowed ones), and a loss kills the worker through its own cell as well, which still works.
#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "this shows why the method is disallowed")]
async fn a_draining_child_outlives_its_parent() {
    for end in End::ALL {
        let journal = Journal::new();
        let renewer = Script::new("renewer", &journal).spawn().await;
        let mut worker = Script::new("worker", &journal).spawn_under(&renewer).await;
        worker.busy(&journal, "worker", 1, forever()).await;
        worker.actor.drain().expect("the worker is alive");

        end.come_to(renewer).await;
        assert!(tokio::time::timeout(YEAR, &mut worker.join).await.is_err(), "{end:?}");

        worker.actor.kill();
        worker.joined().await;
        assert!(journal.has("worker", &Cut(Handle(1))), "{end:?}");
    }
}

/// So is a child in its `post_stop`: a worker that was asked to stop before the loss can hold on, and must be killed
/// through its own cell.
#[tokio::test(start_paused = true)]
async fn a_child_in_its_post_stop_outlives_its_parent() {
    let journal = Journal::new();
    let renewer = Script::new("renewer", &journal).spawn().await;
    let mut worker = Script::new("worker", &journal).post_stop(forever()).spawn_under(&renewer).await;
    worker.actor.stop(None);
    journal.until("worker", Began(PostStop)).await;

    End::Kill.come_to(renewer).await;
    assert!(tokio::time::timeout(YEAR, &mut worker.join).await.is_err());

    worker.actor.kill();
    worker.joined().await;
    assert!(journal.has("worker", &Cut(PostStop)));
}

/// But a mere request to stop exempts nobody: until its `post_stop` the worker goes down with the renewer.
#[tokio::test(start_paused = true)]
async fn a_busy_child_that_was_asked_to_stop_is_killed_with_its_parent() {
    let journal = Journal::new();
    let renewer = Script::new("renewer", &journal).spawn().await;
    let mut worker = Script::new("worker", &journal).spawn_under(&renewer).await;
    worker.busy(&journal, "worker", 1, forever()).await;
    worker.actor.stop(None);

    End::Kill.come_to(renewer).await;
    worker.joined().await;
    assert!(journal.has("worker", &Cut(Handle(1))));
    assert!(!journal.has("worker", &Began(PostStop)));
}

/// A parent does not go down before its `post_stop` is through, and its children not before it: a renewer that is
/// asked to stop has no use for a `post_stop` that takes time, for the worker would run on.
#[tokio::test(start_paused = true)]
async fn children_live_through_their_parents_post_stop() {
    let journal = Journal::new();
    let (open, act) = gated();
    let renewer = Script::new("renewer", &journal).post_stop(act).spawn().await;
    let mut worker = Script::new("worker", &journal).spawn_under(&renewer).await;
    renewer.actor.stop(None);
    journal.until("renewer", Began(PostStop)).await;

    worker.settle().await;
    assert!(!worker.join.is_finished());
    drop(open);
    worker.joined().await;
    assert!(journal.has("renewer", &Ended(PostStop)));
}
