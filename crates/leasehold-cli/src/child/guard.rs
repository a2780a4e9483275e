//! A second process that ends a command's group when this one is killed, or is not there to do it.
//!
//! The parent-death signal reaches the command itself, at once, but not what the command has started: of
//! `sh -c 'import; publish'` it ends the shell and leaves `import` at work, without a lease, for as long as it likes. And
//! no signal comes at all if this process is only paused, by STOP or a debugger: the command would work on past the end
//! of trust, beside the next holder (I4). So this program is started once more, as a guard, with a pipe from us as its
//! only tie. What it hears, a line each, and no line is longer than what a pipe takes whole:
//!
//! | line | means |
//! |---|---|
//! | `until N` | the group may work until the boot clock shows N nanoseconds; the last such line counts |
//! | `group N` | the group to be guarded; the command itself says so, before its program begins |
//! | empty | the group is gone: the guard may leave |
//!
//! It kills the group when the last told end of trust has passed, and when the pipe closes without the empty line,
//! whatever the reason. Without an `until` only the pipe counts.
//!
//! If both processes are paused (a frozen container, a suspended host), nobody kills: only the fence helps.

mod vigil;

use crate::exit::Exit;
use leasehold::Moment;
use rustix::{
    io::{ioctl_fionbio, ioctl_fionread, write},
    process::Pid,
};
use std::{
    ffi::OsString,
    io::{self, PipeWriter, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

/// Our end of the pipe. Clones share it; it closes with the last.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Never blocks: a guard that does not read must not hold up what it guards.
    tie: Arc<PipeWriter>,
}

/// The argument that makes the program a guard.
const WORD: &str = "__guard";

/// As many unread bytes make a guard that is itself paused: it is told no more ends of trust, so that the smallest of
/// pipes has room for the last word. Otherwise, when it goes on, it would kill a number that may be another group's.
const PAUSED: u64 = 1024;

impl Guard {
    /// Prepares to start a guard; the pipe's other end becomes its standard input.
    pub(super) fn prepare() -> io::Result<(Self, Command)> {
        let (other_end, tie) = io::pipe()?;
        ioctl_fionbio(&tie, true)?;
        let mut command = Command::new(this_program()?);
        command.arg0("leasehold-guard").arg(WORD).env_clear();
        // A group of its own: what is sent to ours or to the command's is not meant for it.
        command.process_group(0).stdin(other_end).stdout(Stdio::null()).stderr(Stdio::null());
        Ok((Self { tie: Arc::new(tie) }, command))
    }

    /// Tells until when the group may work. Whether it could be told: if not, an earlier word stands.
    pub(super) fn trust(&self, until: Moment) -> bool {
        ioctl_fionread(&*self.tie).unwrap_or(0) < PAUSED
            && self.say(format_args!("until {}\n", until.as_nanos()))
    }

    /// Names the group to be guarded. Async-signal-safe, except that a closed pipe may raise PIPE.
    pub(super) fn name(&self, group: Pid) {
        self.say(format_args!("group {}\n", group.as_raw_pid()));
    }

    /// Sends the guard away: the group is gone.
    pub(super) fn stand_down(&self) {
        self.say(format_args!("\n"));
    }

    /// Writes a line, whole or not at all. A guard that is gone cannot be told; the parent-death signal still holds.
    fn say(&self, line: std::fmt::Arguments<'_>) -> bool {
        // On the stack, for a forked copy must not allocate.
        let mut room = [0; 32];
        let mut rest = &mut room[..];
        if rest.write_fmt(line).is_err() {
            return false;
        }
        let length = 32 - rest.len();
        write(&*self.tie, &room[..length]) == Ok(length)
    }

    /// Whether this process is to be a guard.
    #[must_use]
    pub fn is_asked_for(mut arguments: impl Iterator<Item = OsString>) -> bool {
        arguments.nth(1).is_some_and(|word| word == WORD)
    }

    /// Is a guard, to the end.
    #[must_use]
    pub fn stand() -> Exit {
        vigil::keep();
        Exit::Done
    }
}

/// The program that runs, even if its file was replaced or removed since.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What would be lost is not the last word, but news of a trust that the guard is too late for anyway.
    #[test]
    fn a_guard_that_does_not_read_makes_nobody_wait_and_still_hears_the_last_word() {
        let (mut other_end, tie) = io::pipe().unwrap();
        ioctl_fionbio(&tie, true).unwrap();
        let guard = Guard { tie: Arc::new(tie) };
        let told = (0..10_000).filter(|nanos| guard.trust(Moment::from_nanos(u64::MAX - nanos))).count();
        assert!((10..100).contains(&told), "{told}");
        guard.name(rustix::process::getpid());
        guard.stand_down();
        drop(guard);
        let mut heard = String::new();
        other_end.read_to_string(&mut heard).unwrap();
        assert_eq!(heard.matches("until ").count(), told, "each line is whole");
        assert!(heard.ends_with(&format!("group {}\n\n", std::process::id())), "{heard}");
    }

    #[test]
    fn a_guard_that_is_gone_is_no_failure() {
        let (other_end, tie) = io::pipe().unwrap();
        drop(other_end);
        let guard = Guard { tie: Arc::new(tie) };
        assert!(!guard.trust(Moment::from_nanos(1)));
        guard.stand_down();
    }
}
