//! A terminal for a test to sit at.

use crate::launch::{DEADLINE, comes_true, end_of, program, state};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags},
    process::{Pid, geteuid},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, tcgetattr, tcgetpgrp},
};
use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command},
    time::Duration,
};

const SECOND: Duration = Duration::from_secs(1);

/// The person's side of a terminal, with a session of programs at the other.
pub struct Pty {
    keyboard_and_screen: File,
    seen: String,
    session: Child,
    /// Keeps the terminal alive between two programs, and lets us look at its modes.
    line: OwnedFd,
}

impl Pty {
    /// Starts a command as the leader of a new session with a terminal of its own.
    pub fn start(command: &Command) -> Self {
        // setsid(1) makes its standard input the controlling terminal, which needs unsafe code to do here.
        Self::start_through(&["setsid", "--ctty"], command)
    }

    /// Starts a command in such a session within a PID namespace, where a shell that starts it has a session from outside, as
    /// in a container that somebody entered.
    pub fn start_in_a_container(command: &Command) -> Self {
        let mut through = vec!["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
        if !geteuid().is_root() {
            through.extend(["--user", "--map-root-user"]);
        }
        through.extend(["sh", "-c", "setsid --ctty --wait \"$@\"; exit $?", "sh"]);
        Self::start_through(&through, command)
    }

    fn start_through(through: &[&str], command: &Command) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let open = || {
            rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap()
        };
        let mut session = program(through[0]);
        crate::launch::with_env_of(&mut session, command);
        let session = session
            .args(&through[1..])
            .arg(command.get_program())
            .args(command.get_args())
            .env("PS1", "$ ")
            .env_remove("ENV")
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap();
        Self { keyboard_and_screen: person.into(), seen: String::new(), session, line: open() }
    }

    pub fn press(&mut self, keys: &str) {
        self.keyboard_and_screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until something stands on the screen, after what was waited for before. Returns what stood before it.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let mut silent = 0;
        loop {
            if let Some(at) = self.seen.find(text) {
                let before = self.seen[..at].to_owned();
                self.seen.drain(..at + text.len());
                return before;
            }
            // Looked at before the screen: what the last program wrote may still be on its way there.
            let over = self.session.try_wait().unwrap();
            silent = if self.reads_within(SECOND) { 0 } else { silent + 1 };
            if silent > 0 && (over.is_some() || SECOND * silent > DEADLINE) {
                // The first thing that is seen of a test that fails.
                println!("on the screen: {:?}; the session ({over:?}):\n{}", self.seen, self.processes());
                panic!("{text:?} never came");
            }
        }
    }

    /// Whether something came on the screen in a while.
    fn reads_within(&mut self, while_: Duration) -> bool {
        let mut ready = [PollFd::new(&self.keyboard_and_screen, PollFlags::IN)];
        if poll(&mut ready, Some(&while_.try_into().unwrap())).unwrap() == 0 {
            return false;
        }
        let mut bytes = [0; 4096];
        let n = self.keyboard_and_screen.read(&mut bytes).unwrap();
        self.seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        true
    }

    /// Waits until something holds of the programs of the session.
    #[track_caller]
    pub fn eventually(&self, what: &str, holds: impl FnMut() -> bool) {
        if !comes_true(holds) {
            println!("the session:\n{}", self.processes());
            panic!("this never came true: {what}");
        }
    }

    /// Waits until a command has the terminal, and waits for what will be typed.
    ///
    /// A Ctrl-Z that is pressed while a stopped command is being given the terminal is lost, as the kernel has it: the
    /// CONT that follows throws it away. A person presses it again.
    #[track_caller]
    pub fn waits_for_a_key(&self, command: Pid) {
        self.eventually("the command reads from the terminal", || {
            tcgetpgrp(&self.keyboard_and_screen) == Ok(command) && state(command) == Some('S')
        });
    }

    /// As [`waits_for_a_key`](Self::waits_for_a_key), of a command that has the terminal and whose number is not known here.
    #[track_caller]
    pub fn is_waited_at(&self) {
        self.eventually("who has the terminal reads from it", || {
            tcgetpgrp(&self.keyboard_and_screen).is_ok_and(|command| state(command) == Some('S'))
        });
    }

    /// The programs of the session: number, name, state, parent, group, session, terminal, foreground group.
    fn processes(&self) -> String {
        let session = format!(" {} ", self.session.id());
        let stats = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            stat.contains(&session).then(|| stat.split(' ').take(8).collect::<Vec<_>>().join(" "))
        });
        stats.collect::<Vec<_>>().join("\n")
    }

    pub fn echoes(&self) -> bool {
        tcgetattr(&self.line).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// The exit status of the program at the other side, once it has ended.
    #[track_caller]
    pub fn code(&mut self) -> Option<i32> {
        end_of(&mut self.session).code()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.session.kill().ok();
        self.session.wait().ok();
    }
}
