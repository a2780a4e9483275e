//! A command that was stopped, by Ctrl-Z or otherwise.
//!
//! A shell that started us waits for *us* to stop before it shows its prompt. But while we are stopped nobody renews,
//! and the lease may be gone when we are continued. So we stop along, and on waking ask before the command goes on.

use super::Child;
use crate::signals::{self, Signals};
use rustix::process::{Signal, kill_current_process_group};
use std::time::Duration;
use tokio::time::timeout;

/// What the kernel needs to start a program.
const A_MOMENT: Duration = Duration::from_millis(1);

/// What [`Child::suspend`] did about a stopped command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspended {
    /// This process was stopped too, perhaps for long, and has been continued. The command is still stopped: check the
    /// lease, then [`Child::resume`] or end it.
    Woken,
    /// Nobody would continue us, so we did not stop. The command stays stopped under a lease that is renewed, until
    /// somebody sends CONT to it or to us.
    Left,
}

impl Child {
    /// Follows a stopped command into its stop, if a shell watches that will continue us.
    pub async fn suspend(&mut self, heard: &mut Signals) -> Suspended {
        let Some(terminal) = self.terminal.as_ref().filter(|terminal| terminal.has_job_control()) else {
            return Suspended::Left;
        };
        terminal.take_back();
        // Who shares our group (a script, the other end of a pipe) would have been stopped by the same Ctrl-Z, had the
        // command not been moved to a group of its own.
        if kill_current_process_group(Signal::TSTP).is_ok() {
            // Our own copy: heard now, or it would be passed on to the command when it has just been continued.
            timeout(Duration::from_millis(100), heard.hear(Signal::TSTP)).await.ok();
        }
        // TSTP is handled by us and so did not stop us; STOP does, before this call returns.
        signals::pause();
        // What woke us: passed over now, or it would undo the next Ctrl-Z.
        timeout(Duration::from_millis(100), heard.hear(Signal::CONT)).await.ok();
        Suspended::Woken
    }

    /// Whether a TSTP is to be kept from the command: at a terminal without a shell above us it would only be undone.
    pub(super) fn ignores_pauses(&self) -> bool {
        self.terminal.as_ref().is_some_and(|terminal| !terminal.has_job_control())
    }

    /// Asks a group once more to stop that cannot, as long as one of it waits for another.
    ///
    /// A process that was stopped between vfork and exec keeps its parent waiting in the kernel, where that can neither stop
    /// nor be seen to. So the group is let go on for a moment.
    pub(super) fn insist_on_pause(&self) {
        if self.group.waits_in_vfork() {
            self.group.signal(Signal::CONT);
            // Blocking, so that nobody drops us here and leaves the command running.
            std::thread::sleep(A_MOMENT);
            self.group.signal(Signal::TSTP);
        }
    }

    /// Continues a stopped command, and gives it the terminal if it had it and it is ours to give.
    pub fn resume(&mut self) {
        let group = self.group.id();
        if let Some(terminal) = &mut self.terminal {
            terminal.lend_again(group);
        }
        self.pause_asked = false;
        self.group.signal(Signal::CONT);
    }

    /// Stops that are no pause: the command asked for the terminal and can have it, or nobody could ever continue it.
    pub(super) fn continued_at_once(&mut self, signal: i32) -> bool {
        let group = self.group.id();
        let asks = signal == Signal::TTIN.as_raw() || signal == Signal::TTOU.as_raw();
        let go_on = match &mut self.terminal {
            // A CONT throws away a TSTP that waits: it would undo a Ctrl-Z that came while the command was asking. Without
            // a shell above us that is what is to be done.
            Some(terminal) if asks => {
                !(self.pause_asked && terminal.has_job_control()) && terminal.lend(group)
            }
            // The kernel itself ignores Ctrl-Z for groups without a shell above them.
            Some(terminal) if signal == Signal::TSTP.as_raw() => !terminal.has_job_control(),
            _ => false,
        };
        if go_on {
            // Whatever asked for this stop is undone: it must not stand in the way of the next request for the terminal.
            self.pause_asked = false;
            self.group.signal(Signal::CONT);
        }
        go_on
    }
}
