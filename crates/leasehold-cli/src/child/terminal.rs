//! The terminal, if the program was started from one.
//!
//! A terminal has one foreground group: the one that gets Ctrl-C and Ctrl-Z and may read. The command runs in a group of
//! its own, so it must be given the terminal, and the terminal must be back with our group before a shell looks.

// In a PID namespace, as in a container, the numbers of groups and sessions from outside of it read as 0. That is a number
// for nix; rustix takes for granted that it never comes.
use nix::{sys::termios::tcgetsid, unistd};
use rustix::{
    process::Pid,
    stdio::{stderr, stdin, stdout},
    termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp},
};
use std::{fs, os::fd::BorrowedFd};

/// The controlling terminal of this process, on its standard input.
#[derive(Debug)]
pub struct Terminal {
    /// The group in which we were started.
    ours: Pid,
    /// The modes we found, for after a command that had no chance to restore them.
    modes: Option<Termios>,
    /// The group that has it from us.
    lent_to: Option<Pid>,
    /// Whether the command gets it before it asks.
    at_once: bool,
}

/// When the command gets the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lend {
    /// At its start, as a shell would give it, so that Ctrl-C reaches the command and not us.
    ///
    /// Not if our output goes into a pipe: at its other end a pager may stand, in our group, and need the terminal more
    /// than a command that has not asked for it.
    AtOnce,
    /// When it asks, by reading from it or changing its modes. Until then Ctrl-C reaches us first.
    OnRequest,
}

impl Terminal {
    /// The terminal, unless standard input is none or is not the one that controls this process, or our own group is out of
    /// our sight: we could never take the terminal back.
    #[must_use]
    pub fn of_this_process(lend: Lend) -> Option<Self> {
        let ours = Pid::from_raw(unistd::getpgrp().as_raw())?;
        let controlling = isatty(stdin()) && tcgetsid(stdin()).ok()? == unistd::getsid(None).ok()?;
        controlling.then(|| Self {
            ours,
            modes: tcgetattr(stdin()).ok(),
            lent_to: None,
            at_once: lend == Lend::AtOnce && !is_pipe(stdout()) && !is_pipe(stderr()),
        })
    }

    /// Whether a command that starts now takes the terminal with it.
    pub(super) fn goes_with_the_child(&self) -> bool {
        self.at_once && self.is_ours()
    }

    /// Whether our group is in the foreground.
    pub(super) fn is_ours(&self) -> bool {
        tcgetpgrp(stdin()) == Ok(self.ours)
    }

    /// Notes that `group` took the terminal itself, as [`parent_death`](super::parent_death) has it do.
    pub(super) const fn taken_by(&mut self, group: Pid) {
        self.lent_to = Some(group);
    }

    /// Gives the terminal to a group; nothing happens unless it is ours to give.
    pub(super) fn lend(&mut self, group: Pid) -> bool {
        // SIGTTOU is blocked for this whole process (see `signals::prepare`), so that this cannot stop us.
        let lent = self.is_ours() && tcsetpgrp(stdin(), group).is_ok();
        if lent {
            self.lent_to = Some(group);
        }
        lent
    }

    /// Gives the terminal to a group that had it before it was stopped, or that would have it from the start.
    pub(super) fn lend_again(&mut self, group: Pid) {
        if self.at_once || self.lent_to == Some(group) {
            self.lend(group);
        }
    }

    /// Whether some group had it from us.
    pub(super) const fn was_lent(&self) -> bool {
        self.lent_to.is_some()
    }

    /// Takes the terminal back, unless somebody else has it by now.
    pub(super) fn take_back(&self) {
        if let Some(group) = self.lent_to
            && tcgetpgrp(stdin()) == Ok(group)
        {
            tcsetpgrp(stdin(), self.ours).ok();
        }
    }

    /// Takes the terminal back from a child that took it and then failed to become the command.
    pub(super) fn reclaim(&self) {
        tcsetpgrp(stdin(), self.ours).ok();
    }

    /// Restores the modes we found: a command that was killed may have left the terminal without echo.
    pub(super) fn restore_modes(&self) {
        if let Some(modes) = self.modes.as_ref().filter(|_| self.lent_to.is_some() && self.is_ours()) {
            tcsetattr(stdin(), OptionalActions::Now, modes).ok();
        }
    }

    /// Whether a shell watches over our group, that will notice when it stops and can continue it. Without one, who
    /// stops is stopped for ever.
    pub(super) fn has_job_control(&self) -> bool {
        let mut process = rustix::process::getppid();
        // Up through our own group, as through a script, to who started it.
        for _ in 0..64 {
            match process {
                Some(pid) if group_of(pid) == Some(self.ours) => process = parent_of(pid),
                Some(pid) => return unistd::getsid(Some(for_nix(pid))) == unistd::getsid(None),
                None => return false,
            }
        }
        false
    }
}

fn is_pipe(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        matches!(kind, rustix::fs::FileType::Fifo | rustix::fs::FileType::Socket)
    })
}

fn for_nix(pid: Pid) -> unistd::Pid {
    unistd::Pid::from_raw(pid.as_raw_pid())
}

/// None for a group that is out of our sight.
fn group_of(pid: Pid) -> Option<Pid> {
    Pid::from_raw(unistd::getpgid(Some(for_nix(pid))).ok()?.as_raw())
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let parent = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(1)?.parse().ok()?;
    Pid::from_raw(parent)
}
