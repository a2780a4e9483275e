//! A terminal for a test to sit at.

use crate::launch::{DEADLINE, end_of, program};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, tcgetattr},
};
use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command},
};

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
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let open = || {
            rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap()
        };
        // setsid(1) makes its standard input the controlling terminal, which needs unsafe code to do here.
        let mut session = program("setsid");
        crate::launch::with_env_of(&mut session, command);
        let session = session
            .arg("--ctty")
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
        loop {
            if let Some(at) = self.seen.find(text) {
                let before = self.seen[..at].to_owned();
                self.seen.drain(..at + text.len());
                return before;
            }
            let mut ready = [PollFd::new(&self.keyboard_and_screen, PollFlags::IN)];
            let limit = Timespec { tv_sec: DEADLINE.as_secs() as i64, tv_nsec: 0 };
            let some = poll(&mut ready, Some(&limit)).unwrap();
            assert_ne!(
                some,
                0,
                "{text:?} never came; on the screen: {:?}; in the session:\n{}",
                self.seen,
                self.processes()
            );
            let mut bytes = [0; 4096];
            let n = self.keyboard_and_screen.read(&mut bytes).unwrap();
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
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
