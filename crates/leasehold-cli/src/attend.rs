//! Looks after a running command: passes signals on, follows it into stops, and ends it when it must end.

use crate::{
    child::{Child, ChildEvent, Ended, Suspended},
    signals::Signals,
};
use std::{future::Future, time::Duration};

/// How the care for a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attended {
    /// How the command and its group ended. Nothing of them is left.
    pub ended: Ended,
    /// Whether we ended it, and it did not exit by itself.
    pub by_us: bool,
}

/// Looks after `child` until nothing of its group is left.
///
/// * If the command exits by itself, what it left in its group has `grace` to follow.
/// * When `must_end` completes, the command has as long as it says.
/// * After a stop in which this process may have slept, `may_go_on` decides; if it says no, the command stays stopped
///   until `must_end` completes: that it must is the same fact, told by another road.
pub async fn attend(
    child: &mut Child,
    signals: &mut Signals,
    grace: Duration,
    may_go_on: impl Fn() -> bool,
    must_end: impl Future<Output = Duration>,
) -> Attended {
    tokio::pin!(must_end);
    loop {
        tokio::select! {
            // An end that is due comes before a signal that would continue the command.
            biased;
            grace = &mut must_end => return Attended { ended: child.end(grace, signals).await, by_us: true },
            event = child.event() => match event {
                ChildEvent::Exited(_) => return Attended { ended: child.end(grace, signals).await, by_us: false },
                ChildEvent::Stopped(_) => {
                    if child.suspend(signals).await == Suspended::Woken && may_go_on() {
                        child.resume();
                    }
                }
            },
            signal = signals.next() => match signal {
                rustix::process::Signal::CONT => if may_go_on() { child.resume() },
                signal => child.pass(signal),
            },
        }
    }
}
