//! A command in a process group of its own, tied to this process, and ended as a whole.
//!
//! * [`Order`]: what to run. [`Reaper`]: starts and reaps. [`Terminal`]: who may read and gets Ctrl-C.
//! * [`Child::event`] tells that the command ended or stopped; what then happens is the caller's choice, for it knows
//!   whether the lease still stands.
//! * [`Child::end`] returns when *nothing* of the group is left. Only then may the lease be released.
//! * If this process itself is killed, so is the command, by the kernel, and its group, by the [`Guard`]. If it is paused
//!   past the end of trust, so is the group: see [`Child::keep_trusted`].
//! * Dropping a `Child` kills the group at once, without waiting: the end of trust in a lease.
//!
//! What this does not reach: a process that leaves the group on purpose (`setsid`, a daemon, an interactive shell's
//! jobs) and what runs on other hosts.

mod ending;
mod group;
mod guard;
mod order;
mod parent_death;
mod reaper;
mod status;
mod suspend;
mod terminal;
mod trust;

pub use ending::Ended;
pub use guard::Guard;
pub use order::Order;
pub use reaper::Reaper;
pub use status::ChildStatus;
pub use suspend::Suspended;
pub use terminal::{Lend, Terminal};

use crate::exit::Exit;
use group::Group;
use reaper::Life;
use rustix::process::Signal;
use std::{io, os::unix::process::CommandExt, sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};

/// How long a dropped child is waited for at most: what a kernel under load may need to end a large process.
const DEATH_THROES: Duration = Duration::from_millis(500);

/// How long a command has to stop when it is asked to, before it is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// A running command and its group.
#[derive(Debug)]
pub struct Child {
    group: Arc<Group>,
    life: watch::Receiver<Life>,
    reaper: Reaper,
    terminal: Option<Terminal>,
    /// Ends the group if we are killed or paused; `None` if it could not be started, or is not needed.
    guard: Option<Guard>,
    /// The stops that were reported.
    stops_seen: u64,
    /// The INTs that were passed on; the second one is a KILL.
    interrupts: u32,
    /// Whether a TSTP was passed on since the command was last continued.
    pause_asked: bool,
}

/// What happened to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEvent {
    /// It ended. Others of its group may still run: [`Child::end`] them.
    Exited(ChildStatus),
    /// A signal, by number, stopped it. See [`Child::suspend`].
    Stopped(i32),
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", program.display())]
pub struct SpawnError {
    program: std::ffi::OsString,
    source: io::Error,
}

impl SpawnError {
    /// The status that shells use for it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self.source.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            // The host is short of processes or memory: no fault of the command.
            io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => Exit::Internal,
            _ => Exit::NotExecutable,
        }
    }
}

impl Child {
    /// Starts a command. To be called on the main thread only: the kernel ties the death of a child to the *thread* that
    /// started it, and only the main thread lives as long as the process.
    ///
    /// # Errors
    /// [`SpawnError`] if it could not be started; then nothing of it is left, and the terminal is where it was.
    pub fn spawn(reaper: &Reaper, order: &Order, mut terminal: Option<Terminal>) -> Result<Self, SpawnError> {
        let mut command = order.command();
        let with_terminal = terminal.as_ref().is_some_and(Terminal::goes_with_the_child);
        command.process_group(0);
        // A short check beside the command is not worth a guard.
        let guard = if order.is_apart() { None } else { reaper.post_guard() };
        if let (Some(guard), Some(until)) = (&guard, order.end_of_trust()) {
            // Before there is a command: we may be paused at any line.
            guard.trust(until);
        }
        parent_death::tie(&mut command, with_terminal, guard.clone());
        match reaper.spawn(&mut command) {
            Ok((group, life)) => {
                if let Some(terminal) = terminal.as_mut().filter(|_| with_terminal) {
                    terminal.taken_by(group.id());
                }
                let reaper = reaper.clone();
                let (stops_seen, interrupts, pause_asked) = (0, 0, false);
                Ok(Self { group, life, reaper, terminal, guard, stops_seen, interrupts, pause_asked })
            }
            Err(source) => {
                if let Some(guard) = guard {
                    // It may have been told the group of a copy of us that found no program.
                    guard.stand_down();
                }
                if let Some(terminal) = terminal.filter(|_| with_terminal) {
                    terminal.reclaim();
                }
                Err(SpawnError { program: order.program().to_owned(), source })
            }
        }
    }

    /// Waits for what happens next. Cancel safe. After [`ChildEvent::Exited`] it says the same again.
    pub async fn event(&mut self) -> ChildEvent {
        loop {
            let life = *self.life.borrow_and_update();
            if let Some(status) = life.ended {
                return ChildEvent::Exited(status);
            }
            if let Some(signal) = life.stopped.filter(|_| life.stops != self.stops_seen) {
                self.stops_seen = life.stops;
                if !self.continued_at_once(signal) {
                    return ChildEvent::Stopped(signal);
                }
            }
            let patience = if self.pause_asked { PAUSE } else { Duration::MAX };
            match timeout(patience, self.life.changed()).await {
                Ok(Ok(())) => {}
                // The reaper keeps the sender until the end was told: it is gone only with the whole program.
                Ok(Err(_)) => std::future::pending().await,
                Err(_) => self.insist_on_pause(),
            }
        }
    }

    /// Whether the command was given the terminal, so that Ctrl-C reached it and not us.
    #[must_use]
    pub fn had_terminal(&self) -> bool {
        self.terminal.as_ref().is_some_and(Terminal::was_lent)
    }

    /// Counts an INT that was answered otherwise than by passing it on: the next one is a KILL all the same.
    pub const fn note_interrupt(&mut self) {
        self.interrupts += 1;
    }

    /// Passes a signal on to the group. The second INT becomes a KILL: who presses Ctrl-C twice has lost patience.
    ///
    /// What asks for an end also continues a stopped group, which could not hear it otherwise. CONT is not passed on,
    /// as only the caller knows whether the command may go on: see [`Self::resume`].
    pub fn pass(&mut self, signal: Signal) {
        match signal {
            Signal::CONT => {}
            Signal::TSTP if self.ignores_pauses() => {}
            Signal::INT if self.interrupts > 0 => self.group.signal(Signal::KILL),
            Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                self.interrupts += u32::from(signal == Signal::INT);
                self.group.signal(signal);
                self.group.signal(Signal::CONT);
            }
            signal => {
                self.pause_asked |= signal == Signal::TSTP;
                self.group.signal(signal);
            }
        }
    }
}

impl Drop for Child {
    /// The worker must not outlive the trust in its lease (I4, I5): whoever drops a child has stopped to wait for it.
    ///
    /// It blocks until the kernel has done what it was told, mostly below a millisecond: a lease may be released as soon
    /// as its work was dropped, and then nothing of it may be left (I6).
    fn drop(&mut self) {
        if !self.group.is_gone() {
            self.group.signal(Signal::KILL);
            self.reaper.bury(&self.group, DEATH_THROES);
            if let Some(terminal) = &self.terminal {
                terminal.take_back();
                terminal.restore_modes();
            }
        }
        // What cannot be killed stays guarded until this process ends, and is then killed once more.
        if let Some(guard) = self.guard.take()
            && self.group.is_gone()
        {
            guard.stand_down();
        }
    }
}
