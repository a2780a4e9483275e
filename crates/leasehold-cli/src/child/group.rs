//! A process group: all that a command has started and not deliberately sent away.

use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process_group, test_kill_process_group},
};
use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
};

/// The group of a child.
///
/// Once it was seen to be gone it is never signalled again, for its number may by then be another group's.
#[derive(Debug)]
pub(super) struct Group {
    id: Pid,
    gone: AtomicBool,
}

impl Group {
    pub(super) const fn new(id: Pid) -> Self {
        Self { id, gone: AtomicBool::new(false) }
    }

    pub(super) const fn id(&self) -> Pid {
        self.id
    }

    /// Sends a signal to every member. A group that is gone is not an error.
    pub(super) fn signal(&self, signal: Signal) {
        if self.is_gone() {
            return;
        }
        match kill_process_group(self.id, signal) {
            Ok(()) | Err(Errno::SRCH) => {}
            // All members run as somebody else, as under sudo.
            Err(errno) => {
                tracing::warn!(group = %self.id, ?signal, %errno, "the command's process group cannot be signalled");
            }
        }
    }

    /// Whether no member is left, zombies included. Each member must have been reaped, by us or by its parent.
    pub(super) fn is_gone(&self) -> bool {
        if !self.gone.load(Ordering::Relaxed) && test_kill_process_group(self.id) == Err(Errno::SRCH) {
            self.gone.store(true, Ordering::Relaxed);
        }
        self.gone.load(Ordering::Relaxed)
    }

    /// Whether the leader waits for a member that was stopped before it became a program of its own, as far as the kernel
    /// tells: the one sleeps where no signal wakes it, another one is stopped.
    pub(super) fn waits_in_vfork(&self) -> bool {
        let leader = fs::read_to_string(format!("/proc/{}/stat", self.id.as_raw_pid()));
        leader.ok().and_then(|stat| state_and_group(&stat)).is_some_and(|(state, _)| state == 'D')
            && self.members().any(|state| state == 'T')
    }

    /// Whether all members that are left are zombies of parents outside of the group, who may never reap them. A zombie
    /// does no work. Reads all of `/proc`: not for a hot loop. False where there is no `/proc`.
    pub(super) fn is_dead(&self) -> bool {
        let mut members = self.members().peekable();
        members.peek().is_some() && members.all(|state| matches!(state, 'Z' | 'X'))
    }

    /// The states of the members, by their letters. None where there is no `/proc`.
    fn members(&self) -> impl Iterator<Item = char> {
        let processes = fs::read_dir("/proc").into_iter().flatten();
        processes
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
            .filter_map(|stat| state_and_group(&stat))
            .filter(|(_, group)| *group == self.id.as_raw_pid())
            .map(|(state, _)| state)
    }
}

/// From `/proc/PID/stat`: `pid (name) state parent group …`, where the name may hold spaces and parentheses.
fn state_and_group(stat: &str) -> Option<(char, i32)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_pretend_to_be_a_state() {
        assert_eq!(state_and_group("7 (a) S 1 (b) c) Z 1 42 42 0 -1"), Some(('Z', 42)));
        assert_eq!(state_and_group(""), None);
    }
}
