//! What the guard does: it listens, looks at the clock, and kills.

use super::super::group::Group;
use leasehold::{BootClock, Clock, Moment};
use nix::sys::signal::SigSet;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read},
    process::{Pid, Signal},
    stdio::stdin,
};
use std::{thread::sleep, time::Duration};

/// Between two looks at a group that was killed, and how often the guard looks before it leaves the rest to the kernel.
const PAUSE: Duration = Duration::from_millis(5);
const LOOKS: u32 = 2_000;

/// The longest wait without a look at the clock: what `poll` waits by stands still while the host is suspended.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What a guard was told.
#[derive(Debug, Default)]
struct Vigil {
    /// The beginning of a line. Only a whole line counts: half a number is another number.
    begun: Vec<u8>,
    group: Option<Pid>,
    until: Option<Moment>,
    end: Option<End>,
}

/// Why a guard need not listen any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The group is gone.
    Dismissed,
    /// Whoever should have said so is gone.
    Deserted,
}

/// Guards what it is told on standard input.
pub(super) fn keep() {
    // It ends when it is told to, or when its work is done, and not with whoever it was started by. No signal that
    // can be blocked is meant for it.
    SigSet::all().thread_block().ok();
    if let Some(group) = Vigil::default().watch() {
        kill(&Group::new(group));
    }
}

fn kill(group: &Group) {
    for _ in 0..LOOKS {
        group.signal(Signal::KILL);
        if group.is_gone() || group.is_dead() {
            break;
        }
        sleep(PAUSE);
    }
}

impl Vigil {
    /// Waits until there is a group to be killed, or none to be guarded.
    fn watch(mut self) -> Option<Pid> {
        loop {
            let wait = self.wait(BootClock.now());
            let heard = self.listen(wait);
            match self.end {
                Some(End::Dismissed) => return None,
                Some(End::Deserted) => return self.group,
                None => {}
            }
            // Only if nothing newer lies in the pipe: this process may have been the one that was paused.
            if wait == Some(Duration::ZERO) && !heard {
                return self.group;
            }
        }
    }

    /// How long nothing can be due: zero if the end of trust has passed, `None` if only a word can change something.
    fn wait(&self, now: Moment) -> Option<Duration> {
        self.group?;
        Some(self.until?.since(now).min(LONGEST_WAIT))
    }

    /// Waits at most `wait` for something to read, and reads it. Whether there was something.
    fn listen(&mut self, wait: Option<Duration>) -> bool {
        // At most a second: it fits.
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        match poll(&mut [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)], wait.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return false,
            Ok(_) => {}
            Err(_) => {
                // The host is short of memory. The clock is looked at all the same.
                sleep(PAUSE);
                return false;
            }
        }
        let mut room = [0; 4096];
        match read(stdin(), &mut room) {
            Ok(length) if length > 0 => self.hear(&room[..length]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => self.end = Some(End::Deserted),
        }
        true
    }

    fn hear(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.begun);
                self.obey(&line);
            } else {
                self.begun.push(*byte);
            }
        }
    }

    /// A line that is none of ours changes nothing; what was told before it stands.
    fn obey(&mut self, line: &[u8]) {
        let Ok(line) = std::str::from_utf8(line) else { return };
        match line.split_once(' ') {
            None if line.is_empty() => self.end = Some(End::Dismissed),
            Some(("group", id)) => {
                // 1 would be everybody; see kill(2).
                let group = id.parse().ok().filter(|id| *id > 1).and_then(Pid::from_raw);
                self.group = group.or(self.group);
            }
            Some(("until", nanos)) => {
                self.until = nanos.parse().ok().map(Moment::from_nanos).or(self.until);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str]) -> Vigil {
        let mut vigil = Vigil::default();
        words.iter().for_each(|word| vigil.hear(word.as_bytes()));
        vigil
    }

    const NOW: Moment = Moment::from_nanos(1_000_000_000);

    #[test]
    fn the_last_told_end_of_trust_counts() {
        let vigil = told(&["until 1100000000\ngroup 7\n"]);
        assert_eq!(vigil.wait(NOW), Some(Duration::from_millis(100)));
        let vigil = told(&["until 1100000000\ngroup 7\nun", "til 12000", "00000\n"]);
        assert_eq!(vigil.wait(NOW), Some(Duration::from_millis(200)));
        let vigil = told(&["until 1200000000\ngroup 7\n", "until 0\n"]);
        assert_eq!(vigil.wait(NOW), Some(Duration::ZERO), "a term can be over before its time");
    }

    #[test]
    fn without_a_group_or_an_end_of_trust_only_a_word_counts() {
        assert_eq!(told(&["until 5\n"]).wait(NOW), None, "nobody to be killed yet");
        assert_eq!(told(&["group 7\n"]).wait(NOW), None, "as for a command without a lease");
    }

    #[test]
    fn the_clock_is_looked_at_once_a_second_since_waits_do_not_count_suspend() {
        assert_eq!(told(&["group 7\nuntil 999999999999999999\n"]).wait(NOW), Some(LONGEST_WAIT));
    }

    #[test]
    fn half_a_line_and_a_strange_line_change_nothing() {
        let mut vigil = told(&[
            "group 71\nuntil 1100000000\n",
            "until soon\nuntil -1\nuntil 99999999999999999999999\ngroup 0\ngroup 1\ngroup -9\ngroup\nwhat\n",
            "until 9 9\n \ngroup 7",
        ]);
        assert_eq!(vigil.group, Pid::from_raw(71));
        assert_eq!((vigil.wait(NOW), vigil.end), (Some(Duration::from_millis(100)), None));
        vigil.hear(b"\xff\xfe\n");
        assert_eq!(vigil.group, Pid::from_raw(71), "half a number, and then no text");
    }

    #[test]
    fn an_empty_line_sends_it_away() {
        assert_eq!(told(&["group 7\n", "\n"]).end, Some(End::Dismissed));
    }
}
