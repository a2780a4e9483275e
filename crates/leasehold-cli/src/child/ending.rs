//! The end of a command: TERM, a grace, KILL, and a look that nothing is left.

use super::{Child, ChildStatus};
use crate::signals::Signals;
use rustix::process::Signal;
use std::time::Duration;
use tokio::time::timeout;

/// How the end of a group went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How the command itself ended.
    pub status: ChildStatus,
    /// Whether the grace passed and KILL was sent.
    pub killed: bool,
}

impl Child {
    /// Ends all that is left of the group, and returns when it is gone: reaped to the last process.
    ///
    /// Every member gets TERM, and CONT in case it is stopped; what is left after `grace` gets KILL. A `grace` of zero
    /// is KILL at once. If the command has already exited and left nothing behind, nothing is sent. Signals that arrive
    /// during the grace are passed on.
    ///
    /// This returns late, or never, for processes that cannot be killed (waiting for a dead disk, or running as another
    /// user): as long as they live, so does the work, and the lease must not be released (I6).
    pub async fn end(&mut self, grace: Duration, signals: &mut Signals) -> Ended {
        let (group, reaper) = (self.group.clone(), self.reaper.clone());
        let mut killed = grace.is_zero();
        if !killed {
            group.signal(Signal::TERM);
            group.signal(Signal::CONT);
            let gone = timeout(grace, reaper.gone(&group));
            tokio::pin!(gone);
            killed = loop {
                tokio::select! {
                    in_time = &mut gone => break in_time.is_err(),
                    signal = signals.next() => self.pass(signal),
                }
            };
        }
        if killed {
            reaper.kill(&group).await;
        }
        let status = self.status().await;
        if let Some(terminal) = &self.terminal {
            terminal.take_back();
            if killed || matches!(status, ChildStatus::Signalled(_)) {
                terminal.restore_modes();
            }
        }
        Ended { status, killed }
    }

    /// Kills the group at once, and returns when it is gone.
    pub async fn kill(&mut self) -> ChildStatus {
        self.reaper.kill(&self.group).await;
        self.status().await
    }

    /// The group is gone, so the command was reaped, and its status is known or about to be.
    async fn status(&mut self) -> ChildStatus {
        match self.life.wait_for(|life| life.ended.is_some()).await.map(|life| life.ended) {
            Ok(Some(status)) => status,
            // Only if somebody else in this process waited for it: then what is known is that it is gone.
            _ => ChildStatus::Signalled(Signal::KILL.as_raw()),
        }
    }
}
