//! Real processes for whole-system tests: started, listened to, signalled, and ended with their test.
//!
//! ```no_run
//! # async fn test() -> std::io::Result<()> {
//! use leasehold_testkit::process::{Process, Signal};
//! use std::{process::Command, time::Duration};
//!
//! let within = Duration::from_secs(10);
//! let mut child = Process::spawn(Command::new("leasehold").args(["elect", "feed", "--", "worker"]))?;
//! child.line("leading", within).await;
//! child.pause(); // the whole family, as a frozen machine would be
//! child.resume();
//! child.signal(Signal::TERM);
//! assert!(child.exit(within).await.success());
//! # Ok(())
//! # }
//! ```

mod family;
mod guard;
mod output;

pub use rustix::process::Signal;

use guard::Guard;
use output::Output;
use rustix::process::Pid;
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};
use tokio::process::Child;

/// A running program, in a process group of its own. It is killed with everything it started when this is dropped,
/// and also when the test process itself is killed.
///
/// What it prints is kept. The methods panic with that output when a test's expectation fails, since without it
/// nobody could tell why.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    stdout: Output,
    stderr: Output,
    // Dropped last: it watches over the group until the group is gone.
    guard: Guard,
}

impl Process {
    /// Starts a program with its input closed and its output kept. Must be called on a tokio runtime. The command is
    /// used up: what is left of it starts nothing.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(std::mem::replace(command, Command::new("")));
        let mut child = command.kill_on_drop(true).spawn()?;
        let gone = || io::Error::other("the program ended before it was looked at");
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or_else(gone)?;
        let guard = Guard::over(pid)?;
        let stdout = Output::of(child.stdout.take());
        let stderr = Output::of(child.stderr.take());
        Ok(Self { child, pid, stdout, stderr, guard })
    }

    /// A test of this very test binary, to be run as a process of its own. The test must be marked `#[ignore]` and
    /// do nothing unless [`is_role`] says that it was meant.
    ///
    /// # Panics
    /// If the operating system does not tell where this binary is.
    #[must_use]
    pub fn role(test: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("the path of this test binary"));
        // Quiet, so that the harness prints nothing in front of the role's own first line.
        command.args([test, "--exact", "--include-ignored", "--nocapture", "--quiet", "--test-threads=1"]);
        command.env(ROLE, test);
        command
    }

    /// Its process id, which is also the id of its group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits for a line on its standard output that holds `text`, and gives the line. Each line is given once.
    ///
    /// # Panics
    /// If no such line comes in time, or the output ends before.
    pub async fn line(&mut self, text: &str, within: Duration) -> String {
        match self.stdout.line(text, within).await {
            Some(line) => line,
            None => panic!("no line with {text:?} came within {within:?}; {}", self.report()),
        }
    }

    /// The same for its standard error.
    ///
    /// # Panics
    /// As [`Process::line`].
    pub async fn error_line(&mut self, text: &str, within: Duration) -> String {
        match self.stderr.line(text, within).await {
            Some(line) => line,
            None => panic!("no error line with {text:?} came within {within:?}; {}", self.report()),
        }
    }

    pub(crate) async fn ended(&mut self, within: Duration) {
        let _ = tokio::time::timeout(within, self.child.wait()).await;
    }

    pub(crate) async fn said(&mut self, text: &str, within: Duration) -> bool {
        self.stdout.line(text, within).await.is_some()
    }

    pub(crate) async fn complained(&mut self, text: &str, within: Duration) -> bool {
        self.stderr.line(text, within).await.is_some()
    }

    /// What it has printed so far, on standard output and standard error.
    #[must_use]
    pub fn printed(&self) -> (String, String) {
        (self.stdout.text(), self.stderr.text())
    }

    /// Sends a signal to the program alone. One that has ended is no error.
    pub fn signal(&self, signal: Signal) {
        // A child that was not waited for keeps its pid, so no stranger can be hit; one that was is left alone.
        if self.child.id().is_some() {
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }

    /// Freezes the program and everything it started, and returns when they are frozen.
    pub fn pause(&self) {
        let mut frozen = Vec::new();
        // Until nobody is left who could have started another one meanwhile.
        loop {
            let family = if self.child.id().is_some() { family::of(self.pid) } else { Vec::new() };
            let awake: Vec<_> = family.into_iter().filter(|member| !frozen.contains(member)).collect();
            if awake.is_empty() {
                break;
            }
            for member in &awake {
                let _ = rustix::process::kill_process(*member, Signal::STOP);
            }
            awake.iter().for_each(|member| family::wait_until_stopped(*member));
            frozen.extend(awake);
        }
        // Whom the family has disowned, and all of it where there is no `/proc`.
        let _ = rustix::process::kill_process_group(self.pid, Signal::STOP);
        family::wait_until_stopped(self.pid);
    }

    /// Lets a frozen family run on.
    pub fn resume(&self) {
        self.signal_family(Signal::CONT);
    }

    /// Kills the program and everything it started, as a crash of the machine would.
    pub fn kill(&self) {
        self.signal_family(Signal::KILL);
    }

    /// Whether it runs (or is frozen).
    #[must_use]
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end in time.
    pub async fn exit(&mut self, within: Duration) -> ExitStatus {
        match tokio::time::timeout(within, self.child.wait()).await {
            Ok(Ok(status)) => status,
            Ok(Err(error)) => panic!("its end could not be waited for: {error}; {}", self.report()),
            Err(_) => panic!("it did not end within {within:?}; {}", self.report()),
        }
    }

    fn signal_family(&self, signal: Signal) {
        if self.child.id().is_some() {
            // The family first: some programs give their children groups of their own.
            for member in family::of(self.pid) {
                let _ = rustix::process::kill_process(member, signal);
            }
        }
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }

    fn report(&self) -> String {
        let (stdout, stderr) = self.printed();
        format!("process {} printed\n--- stdout ---\n{stdout}\n--- stderr ---\n{stderr}", self.pid)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        // Reaped here, so that the directory it used can be removed after it. SIGKILL needs no more than this.
        for _ in 0..2_000 {
            if !self.is_running() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.guard.dismiss();
    }
}

const ROLE: &str = "LEASEHOLD_ROLE";

/// Whether this process was started by [`Process::role`] to play that test's part.
#[must_use]
pub fn is_role(test: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|role| role == test)
}
