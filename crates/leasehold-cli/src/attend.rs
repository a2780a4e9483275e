//! Looks after a running command: passes signals on, follows it into stops, and ends it when it must end.

use crate::{
    child::{Child, ChildEvent, Ended, Suspended},
    signals::Signals,
};
use rustix::process::Signal;
use std::{future::Future, time::Duration};

/// Which signals go on to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// All.
    All,
    /// All but INT and TERM: somebody else answers these, by an end in good order.
    AllButEnds,
}

/// How the care for a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attended<W> {
    /// How the command and its group ended. Nothing of them is left.
    pub ended: Ended,
    /// Why we ended it; `None` if it exited by itself.
    pub why: Option<W>,
    /// The last signal that was passed on.
    pub passed: Option<Signal>,
}

/// Looks after `child` until nothing of its group is left.
///
/// * If the command exits by itself, what it left in its group has `grace` to follow.
/// * When `must_end` completes, the command has as long as it says.
/// * After a stop in which this process may have slept, `may_go_on` decides; if it says no, the command stays stopped
///   until it is ended: that it must be is the same fact, told by another road.
pub async fn attend<W>(
    child: &mut Child,
    signals: &mut Signals,
    passing: Passing,
    grace: Duration,
    may_go_on: impl Fn() -> bool,
    must_end: impl Future<Output = (Duration, W)>,
) -> Attended<W> {
    tokio::pin!(must_end);
    let mut passed = None;
    let (grace, why) = loop {
        tokio::select! {
            // An end that is due comes before a signal that would continue the command.
            biased;
            (grace, why) = &mut must_end => break (grace, Some(why)),
            event = child.event() => match event {
                ChildEvent::Exited(_) => break (grace, None),
                ChildEvent::Stopped(_) => {
                    if child.suspend(signals).await == Suspended::Woken && may_go_on() {
                        child.resume();
                    }
                }
            },
            signal = signals.next() => match signal {
                Signal::CONT => if may_go_on() { child.resume() },
                Signal::INT if passing == Passing::AllButEnds => child.note_interrupt(),
                Signal::TERM if passing == Passing::AllButEnds => {}
                signal => {
                    passed = Some(signal);
                    child.pass(signal);
                }
            },
        }
    };
    Attended { ended: child.end(grace, signals).await, why, passed }
}
