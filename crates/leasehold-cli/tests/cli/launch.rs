//! Starts the program and waits for what it does, never for time to pass.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

/// Longer than anything takes, even on a busy machine; only a failing test waits so long.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The program, with no leasehold variable of whoever runs the tests.
pub fn leasehold() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"LEASEHOLD_"))
    {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// The wrapper around a shell script.
pub fn wrapping(options: &[&str], script: &str) -> Command {
    let mut command = leasehold();
    command.arg("__child").args(options).args(["--", "sh", "-c", script]);
    command
}

/// A running program whose output can be waited for line by line. It is killed if the test ends before it does.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    stderr: Option<thread::JoinHandle<String>>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (line, lines) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|l| line.send(l)));
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).ok();
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { child, lines, stderr: Some(stderr) }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn line(&self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a line of output")
    }

    pub fn expect_line(&self, expected: &str) {
        assert_eq!(self.line(), expected);
    }

    /// A line that is a process id.
    pub fn pid_line(&self) -> Pid {
        Pid::from_raw(self.line().parse().unwrap()).unwrap()
    }

    pub fn close_stdin(&mut self) {
        self.child.stdin = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    pub fn code(&mut self) -> i32 {
        let status = self.wait();
        status.code().unwrap_or_else(|| panic!("the program was itself ended: {status}"))
    }

    /// What was written to stderr. Ends when everybody who has it open has ended.
    pub fn stderr(&mut self) -> String {
        self.stderr.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Never a failure of its own: the test may have seen it end.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Waits until something holds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let pause = Duration::from_millis(5);
    for _ in 0..DEADLINE.as_millis() / pause.as_millis() {
        if holds() {
            return;
        }
        thread::sleep(pause);
    }
    panic!("this never came true: {what}");
}

/// The state letter of a process; `None` if there is none. A zombie (`Z`) does nothing any more.
pub fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

pub fn runs(pid: Pid) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// Runs to its end: status, stdout, stderr.
pub fn output(command: &mut Command) -> (i32, String, String) {
    let out = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

pub fn with_args<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = leasehold();
    command.args(args);
    command
}
