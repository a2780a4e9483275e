//! Starts the program and waits for what it does, never for time to pass.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// Longer than anything takes, even on a busy machine; only a failing test waits so long.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A program that starts with no signal ignored. The background jobs of a script ignore INT and QUIT, and hand that down
/// to the tests they run; the wrapper would rightly keep to it.
pub fn program(name: &str) -> Command {
    let ignored = std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        // Ours are 1 to 31, and 13 is SIGPIPE, which every Rust program ignores and resets for its children.
        u64::from_str_radix(mask.trim(), 16).unwrap() & 0x7fff_ffff & !(1 << 12) != 0
    });
    if !ignored {
        return Command::new(name);
    }
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(name);
    command
}

/// The program, with no leasehold variable of whoever runs the tests.
pub fn leasehold() -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_leasehold"));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"LEASEHOLD_"))
    {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A store of a test's own, and the program on it.
pub struct Store {
    dir: TempDir,
}

/// For a shell script under a wrapper: prints the process id of the wrapper's guard.
pub const GUARD: &str = "for p in /proc/[0-9]*; do \
                           grep -qz ^leasehold-guard $p/cmdline && grep -q \"^PPid:.$PPID$\" $p/status && echo ${p#/proc/}; \
                         done 2>/dev/null";

/// The lease of most tests.
pub const JOB: &str = "job";

impl Store {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn url(&self) -> String {
        format!("sqlite:{}", self.path("leases.db").display())
    }

    pub fn leasehold<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = leasehold();
        // In the environment, so that a test of the arguments finds only its own.
        command.env("LEASEHOLD_STORE", self.url()).args(args);
        command
    }

    /// `run` around a shell script, with a ttl that no test waits for.
    pub fn run(&self, options: &[&str], script: &str) -> Command {
        self.verb("run", options, script)
    }

    /// `elect` around a shell script.
    pub fn elect(&self, options: &[&str], script: &str) -> Command {
        self.verb("elect", options, script)
    }

    fn verb(&self, verb: &str, options: &[&str], script: &str) -> Command {
        let mut command = self.leasehold([verb, JOB]);
        if !options.iter().any(|option| option.starts_with("--ttl")) {
            command.arg("--ttl=60s");
        }
        command.args(options).args(["--", "sh", "-c", script]);
        command
    }

    /// Who holds the lease of most tests, as `status --json` tells it.
    pub fn status(&self) -> serde_json::Value {
        let (code, stdout, stderr) = output(&mut self.leasehold(["status", JOB, "--json"]));
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// Keeps every other process from writing to the store until it is dropped.
    pub fn lock(&self) -> rusqlite::Connection {
        let locked = rusqlite::Connection::open(self.path("leases.db")).unwrap();
        locked.busy_timeout(DEADLINE).unwrap();
        locked.execute_batch("BEGIN IMMEDIATE").unwrap();
        locked
    }
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
        end_of(&mut self.child)
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

/// Waits for a process to end.
#[track_caller]
pub fn end_of(child: &mut Child) -> ExitStatus {
    let mut status = None;
    eventually("the program ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// Waits until something holds.
#[track_caller]
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_true(holds), "this never came true: {what}");
}

/// Whether something holds, at some time before the deadline.
pub fn comes_true(mut holds: impl FnMut() -> bool) -> bool {
    let pause = Duration::from_millis(5);
    (0..DEADLINE.as_millis() / pause.as_millis()).any(|_| {
        let does = holds();
        if !does {
            thread::sleep(pause);
        }
        does
    })
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

/// The command inside of a shell script, which finds it as `"$0" "$@"`.
pub fn in_shell(script: &str, command: &Command) -> Command {
    let mut shell = program("sh");
    // The shell has ordinary signals already, and what it then ignores shall stay ignored.
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    shell.args(["-c", script]).args(words.skip_while(|word| *word == "env" || *word == "--default-signal"));
    with_env_of(&mut shell, command);
    shell
}

/// Gives one command the environment that was set for another.
pub fn with_env_of(command: &mut Command, other: &Command) {
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// A command line for a shell, quoted.
pub fn line(command: &Command) -> String {
    let quoted = |word: &OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"));
    let words: Vec<_> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect();
    words.join(" ")
}
