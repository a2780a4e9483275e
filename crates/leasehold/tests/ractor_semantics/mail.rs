//! What becomes of messages and calls when an actor ends or is busy.

use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{MessagingErr, RpcReplyPort};
use tokio::sync::oneshot;

use super::act::{Act, forever, gated, nothing};
use super::journal::Hook::Handle;
use super::journal::Step::{Began, Ended};
use super::journal::{Journal, soon};
use super::player::Cue;
use super::script::Script;

const SECOND: Duration = Duration::from_secs(1);

/// A message that answers with `answer`, after `act`.
fn ask(tag: u8, act: Act, port: RpcReplyPort<u8>, answer: u8) -> Cue {
    let act = Act::new(move |me| async move {
        act.begin(me).await?;
        // Whether anybody still wants the answer is the caller's affair.
        let _ = port.send(answer);
        Ok(())
    });
    Cue(tag, act)
}

/// What could not be sent comes back. The clerk relies on it (I7): a grant whose asker is gone by then is in its hands
/// again, to be given back to the store.
#[tokio::test(start_paused = true)]
async fn a_message_to_a_dead_actor_comes_back() {
    let journal = Journal::new();
    let mut actor = Script::new("actor", &journal).spawn().await;
    actor.actor.kill();
    actor.joined().await;
    match actor.actor.cast(Cue(7, nothing())) {
        Err(MessagingErr::SendErr(Cue(tag, _))) => assert_eq!(tag, 7),
        other => panic!("{other:?}"),
    }
}

/// A message that was sent may still be dropped unread, without the sender being told. So `Ok` from a cast proves
/// nothing (I7): what a message carries has to undo itself when it is dropped, or be found again by its attempt id.
#[tokio::test(start_paused = true)]
async fn a_message_in_the_queue_is_dropped_with_the_actor() {
    let journal = Journal::new();
    let mut actor = Script::new("actor", &journal).spawn().await;
    actor.busy(&journal, "actor", 1, forever()).await;
    let (cargo, mut dropped) = oneshot::channel::<()>();
    actor.cue(
        2,
        Act::new(|_| async {
            drop(cargo);
            Ok(())
        }),
    );
    assert_eq!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Empty));

    actor.actor.kill();
    actor.joined().await;
    assert_eq!(
        dropped.try_recv(),
        Err(oneshot::error::TryRecvError::Closed),
        "dropped by the join at the latest"
    );
    assert!(!journal.has("actor", &Began(Handle(2))));
}

/// A call ends with the callee, whether its message was at work or still in the queue. Our public handles turn that
/// into an error of their own.
#[tokio::test(start_paused = true)]
async fn a_call_ends_when_the_callee_does() {
    let journal = Journal::new();
    let mut actor = Script::new("actor", &journal).spawn().await;
    let calls: Vec<_> = [1, 2]
        .map(|tag| {
            let callee = actor.actor.clone();
            tokio::spawn(async move { callee.call(|port| ask(tag, forever(), port, 0), None).await })
        })
        .into();
    journal.until("actor", Began(Handle(1))).await;

    actor.actor.kill();
    actor.joined().await;
    for call in calls {
        let result = soon(call).await.expect("no abort");
        assert!(matches!(result, Ok(CallResult::SenderError)), "{result:?}");
    }
}

/// The callee goes on after its caller's time is up, and an effect of it may come later: a timed-out call to the clerk
/// has the outcome `Unknown` and none other (I7). The callee can tell by the closed port.
#[tokio::test(start_paused = true)]
async fn a_timed_out_call_is_carried_out_all_the_same() {
    let journal = Journal::new();
    let actor = Script::new("actor", &journal).spawn().await;
    let (open, act) = gated();
    let (closed, was_closed) = oneshot::channel();
    let result = actor.actor.call(
        |port: RpcReplyPort<u8>| {
            let act = Act::new(|me| async move {
                act.begin(me).await?;
                let _ = closed.send(port.is_closed());
                Ok(())
            });
            Cue(1, act)
        },
        Some(SECOND),
    );
    let result = soon(result).await;
    assert!(matches!(result, Ok(CallResult::Timeout)), "{result:?}");
    assert!(!journal.has("actor", &Ended(Handle(1))));

    drop(open);
    journal.until("actor", Ended(Handle(1))).await;
    assert!(soon(was_closed).await.expect("the handler says so"));
}

/// An actor that calls itself, or that calls one which calls it, waits for an answer it would have to give. So no
/// handler of ours calls: messages run along a DAG, and answers come back as messages.
#[tokio::test(start_paused = true)]
async fn a_call_from_inside_a_handler_can_wait_for_itself() {
    let journal = Journal::new();
    let actor = Script::new("actor", &journal).spawn().await;
    let (told, result) = oneshot::channel();
    actor.cue(
        1,
        Act::new(|me| async move {
            let _ =
                told.send(me.call(|port| ask(2, nothing(), port, 7), Some(SECOND)).await.map_err(|_| "dead"));
            Ok(())
        }),
    );
    let result = soon(result).await.expect("the handler comes to its end");
    assert!(matches!(result, Ok(CallResult::Timeout)), "{result:?}");
    journal.until("actor", Ended(Handle(2))).await;
}
