//! A second process that ends a command's group when this one is killed.
//!
//! The parent-death signal reaches the command itself, at once, but not what the command has started: of
//! `sh -c 'import; publish'` it ends the shell and leaves `import` at work, without a lease, for as long as it likes. So
//! this program is started once more, as a guard, with a pipe from us as its only tie. When the pipe closes without a
//! word, whatever the reason, the guard kills the group.
//!
//! It is told the group, one line, after the command has started, and an empty line when the group is gone.

use super::group::Group;
use crate::exit::Exit;
use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal};
use std::{
    ffi::OsString,
    io::{self, BufRead, PipeWriter, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

/// Our end of the pipe.
#[derive(Debug)]
pub struct Guard {
    tie: PipeWriter,
}

/// The argument that makes the program a guard.
const WORD: &str = "__guard";
/// Between two looks at a group that was killed, and how often the guard looks before it leaves the rest to the kernel.
const PAUSE: Duration = Duration::from_millis(5);
const LOOKS: u32 = 2_000;

impl Guard {
    /// Prepares to start a guard; the pipe's other end becomes its standard input.
    pub(super) fn prepare() -> io::Result<(Self, Command)> {
        let (other_end, tie) = io::pipe()?;
        let mut command = Command::new(this_program()?);
        command.arg0("leasehold-guard").arg(WORD).env_clear();
        // A group of its own: what is sent to ours or to the command's is not meant for it.
        command.process_group(0).stdin(other_end).stdout(Stdio::null()).stderr(Stdio::null());
        Ok((Self { tie }, command))
    }

    /// Names the group to be guarded.
    pub(super) fn watch(&mut self, group: &Group) {
        // A guard that is gone already cannot be told; the parent-death signal still holds.
        writeln!(self.tie, "{}", group.id().as_raw_pid()).ok();
    }

    /// Sends the guard away: the group is gone.
    pub(super) fn stand_down(mut self) {
        writeln!(self.tie).ok();
    }

    /// Whether this process is to be a guard.
    #[must_use]
    pub fn is_asked_for(mut arguments: impl Iterator<Item = OsString>) -> bool {
        arguments.nth(1).is_some_and(|word| word == WORD)
    }

    /// Is a guard, to the end.
    #[must_use]
    pub fn stand() -> Exit {
        // It ends when it is told to, or when its work is done, and not with whoever it was started by. No signal that
        // can be blocked is meant for it.
        SigSet::all().thread_block().ok();
        let mut lines = io::stdin().lock().lines();
        let named = lines.next().and_then(|line| Pid::from_raw(line.ok()?.parse().ok()?));
        let (Some(group), None) = (named.map(Group::new), lines.next()) else { return Exit::Done };
        for _ in 0..LOOKS {
            group.signal(Signal::KILL);
            if group.is_gone() || group.is_dead() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Exit::Done
    }
}

/// The program that runs, even if its file was replaced or removed since.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}
