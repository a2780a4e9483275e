//! Virtual time and timers.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::act::{Act, gated, nothing};
use super::journal::Hook::Handle;
use super::journal::Step::{Began, Ended};
use super::journal::{Journal, soon};
use super::player::Cue;
use super::script::Script;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Handles a tick and arms the next one, `left` times.
fn tick(left: u32, done: oneshot::Sender<()>) -> Act {
    Act::new(move |me| async move {
        if left == 0 {
            // The test waits for it.
            let _ = done.send(());
        } else {
            me.send_after(SECOND, move || Cue(1, tick(left - 1, done)));
        }
        Ok(())
    })
}

/// Whole terms are tested in no time: timers, kills and waits of actors all run on tokio's clock, and nothing of it
/// drifts when each tick arms the next (which is how the renewer does it).
#[tokio::test(start_paused = true)]
async fn an_hour_of_ticks_takes_an_hour_of_virtual_time() {
    let journal = Journal::new();
    let mut actor = Script::new("actor", &journal).spawn().await;
    let began = Instant::now();
    let (done, finished) = oneshot::channel();
    actor.cue(0, tick(3600, done));
    timeout(2 * HOUR, finished).await.expect("it takes an hour").expect("the last tick reports");
    // tokio's timers have a granularity of a millisecond and may be late by one each.
    let took = began.elapsed();
    assert!(took >= HOUR && took < HOUR + Duration::from_millis(1) * 3600, "{took:?}");

    actor.actor.kill_after(HOUR);
    timeout(2 * HOUR, &mut actor.join).await.expect("it is killed by then").expect("no abort");
    let took = began.elapsed();
    assert!(took >= 2 * HOUR && took < 2 * HOUR + 4 * SECOND, "{took:?}");
}

/// A timer is not ended by the drop of its handle, so a deadline of ours that no longer matters is aborted, or told
/// apart by what its message says.
#[tokio::test(start_paused = true)]
async fn a_timer_is_cancelled_by_abort_and_not_by_drop() {
    let journal = Journal::new();
    let actor = Script::new("actor", &journal).spawn().await;
    drop(actor.actor.send_after(SECOND, || Cue(1, nothing())));
    let aborted = actor.actor.send_after(SECOND, || Cue(2, nothing()));
    aborted.abort();
    assert!(soon(aborted).await.expect_err("it was aborted").is_cancelled());

    journal.until("actor", Ended(Handle(1))).await;
    sleep(HOUR).await;
    assert!(!journal.has("actor", &Began(Handle(2))));
}

/// Nor by the end of the actor it is for. It does no harm then: the message comes back to the timer's handle. But it
/// stays until its time, with what it carries: nothing that must be let go soon is put into a timer (I11).
#[tokio::test(start_paused = true)]
async fn a_timer_outlives_its_actor_and_does_no_harm() {
    let journal = Journal::new();
    let mut actor = Script::new("actor", &journal).spawn().await;
    let (cargo, mut dropped) = oneshot::channel::<()>();
    let timer = actor.actor.send_after(HOUR, move || {
        drop(cargo);
        Cue(1, nothing())
    });
    actor.actor.kill();
    actor.joined().await;
    sleep(SECOND).await;
    assert!(!timer.is_finished());
    assert_eq!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Empty));

    let result = timeout(2 * HOUR, timer).await.expect("it is due after an hour").expect("no abort");
    assert!(result.is_err(), "the message could not be sent");
}

/// An interval does not wait for the last tick to be handled; a slow store would be followed by a burst of renewals.
/// The method is on our list of disallowed ones.
#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "this shows why the method is disallowed")]
async fn an_interval_piles_its_ticks_up_behind_a_slow_handler() {
    let journal = Journal::new();
    let mut actor = Script::new("actor", &journal).spawn().await;
    let (open, act) = gated();
    actor.busy(&journal, "actor", 1, act).await;
    let interval = actor.actor.send_interval(SECOND, || Cue(2, nothing()));
    sleep(10 * SECOND + SECOND / 2).await;
    assert!(!journal.has("actor", &Began(Handle(2))));
    interval.abort();

    drop(open);
    soon(actor.settle()).await;
    let ticks = journal.of("actor").into_iter().filter(|step| *step == Ended(Handle(2))).count();
    assert_eq!(ticks, 10);
    actor.actor.kill();
    actor.joined().await;
}
