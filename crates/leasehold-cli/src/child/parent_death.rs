//! What a child does between fork and exec: ties its life to ours, names itself to its guard, and takes the terminal.
//!
//! This is the one place of the program that needs `unsafe`: a closure that runs in the forked copy of a process that
//! may have had other threads, where only async-signal-safe calls are allowed. It makes system calls through rustix and
//! nix on values of its own stack, and neither allocates nor takes a lock.
//!
//! The kernel ties the death signal to the *thread* that forked, not to its process: a child that a worker thread of a
//! runtime forked would be killed when that thread retires. Therefore the program runs a `current_thread` runtime on
//! its main thread, and only there spawns.

use super::Guard;
use nix::sys::signal::{SigHandler, SigSet, Signal as NixSignal, signal};
use rustix::{
    io::Errno,
    process::{Pid, getpid, getppid},
    termios::tcsetpgrp,
};
use std::{io, os::unix::process::CommandExt, process::Command};

/// Has the child ended by KILL when the thread that spawns it ends, has it named to `guard`, and gives it the terminal
/// on standard input, if `terminal`, before its program can look.
///
/// The child names itself since nobody else can in time: this process may be paused, or killed, while the program already
/// begins.
#[allow(unsafe_code, reason = "pre_exec has no safe equivalent; what the closure may do is stated above")]
pub(super) fn tie(command: &mut Command, terminal: bool, guard: Option<Guard>) {
    let parent = getpid();
    // SAFETY: the closure only makes async-signal-safe system calls, see the module's text.
    unsafe {
        command.pre_exec(move || {
            die_with(parent)?;
            if let Some(guard) = &guard {
                name_to(guard);
            }
            if terminal {
                take_terminal();
            }
            Ok(())
        });
    }
}

fn die_with(parent: Pid) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // The parent may have died before the line above, and then no signal will come.
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}

/// The child leads its group by now. A guard that is gone must not end it by PIPE, which the standard library has set
/// back to what programs expect.
#[allow(unsafe_code, reason = "signal(2) is async-signal-safe; no handler of ours is installed")]
fn name_to(guard: &Guard) {
    // SAFETY: only "ignore", and then whatever was there before.
    if let Ok(before) = unsafe { signal(NixSignal::SIGPIPE, SigHandler::SigIgn) } {
        guard.name(getpid());
        // SAFETY: as above.
        unsafe { signal(NixSignal::SIGPIPE, before) }.ok();
    }
}

/// The standard library has already put the child into its own group and emptied its signal mask. A group that is not in
/// the foreground is stopped for touching the terminal, unless the signal for it is blocked.
fn take_terminal() {
    let mut ttou = SigSet::empty();
    ttou.add(NixSignal::SIGTTOU);
    if ttou.thread_block().is_ok() {
        // Without the terminal the child still runs, in the background.
        tcsetpgrp(rustix::stdio::stdin(), getpid()).ok();
        ttou.thread_unblock().ok();
    }
}
