//! The part that a replica is to play.

use super::Replica;
use crate::{FullDisk, Ledger, WallClock, site::LEASE};
use std::{
    ffi::OsString,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// The uid of `nobody`, who owns nothing.
const NOBODY: u32 = 65_534;

/// A replica that is about to be started: what it is after, and how.
#[derive(Debug)]
#[must_use = "nothing is started before `elect`, `hold` or `hold_once` is called"]
pub struct Casting {
    id: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    user: Option<u32>,
}

impl Casting {
    pub(crate) fn new(program: &str, store: &str, id: &str) -> Self {
        let arguments = ["--store", store, "--lease", LEASE, "--replica", id].map(OsString::from).into();
        Self { id: id.into(), program: program.into(), arguments, environment: Vec::new(), user: None }
    }

    fn with(mut self, option: &str, value: impl std::fmt::Display) -> Self {
        self.arguments.extend([option.into(), value.to_string().into()]);
        self
    }

    fn flag(mut self, option: &str) -> Self {
        self.arguments.push(option.into());
        self
    }

    fn set(mut self, environment: [(&'static str, &Path); 2]) -> Self {
        self.environment.extend(environment.map(|(name, path)| (name, path.into())));
        self
    }

    /// The lease's ttl.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with("--ttl", humantime::format_duration(ttl))
    }

    /// The process's end ends the claim.
    pub fn crash_witness(self) -> Self {
        self.flag("--crash-witness")
    }

    /// Writes go there.
    pub fn ledger(self, ledger: &Ledger) -> Self {
        self.with("--ledger", ledger.address())
    }

    /// The worker writes this often, without being told.
    pub fn writing_every(self, every: Duration) -> Self {
        self.with("--every", humantime::format_duration(every))
    }

    /// The worker goes on writing for so long after it was asked to end.
    pub fn lingering(self, linger: Duration) -> Self {
        self.with("--linger", humantime::format_duration(linger))
    }

    /// One thread runs everything: renewals stand still while the worker blocks it.
    pub fn on_one_thread(self) -> Self {
        self.flag("--one-thread")
    }

    /// Renewals have a runtime of their own, and depend on the worker's pulse.
    pub fn renewing_apart(self) -> Self {
        self.flag("--renew-apart")
    }

    /// A thread asks the lease every millisecond whether it is trusted, and tells when it was so for the last time.
    pub fn sampled(self) -> Self {
        self.flag("--sample")
    }

    /// Under a wall clock that can be stepped.
    pub fn under(self, clock: &WallClock) -> Self {
        self.set(clock.environment())
    }

    /// On a disk that can be full.
    pub fn on(self, disk: &FullDisk) -> Self {
        self.set(disk.environment())
    }

    /// As somebody without special rights, for whom permissions count: if the test is root's, as `nobody`, from a copy
    /// of the program below `dir`.
    ///
    /// # Panics
    /// If the program cannot be copied.
    pub fn unprivileged(mut self, dir: &Path) -> Self {
        if rustix::process::geteuid().is_root() {
            // Where the program was built may be closed to others.
            let copy = dir.join("replica");
            fs::copy(&self.program, &copy).expect("room for a copy of the program");
            fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("the test's own directory");
            self.program = copy;
            self.user = Some(NOBODY);
        }
        self
    }

    /// Starts it: it campaigns until it is ended.
    #[must_use]
    pub fn elect(self) -> Replica {
        self.start("elect")
    }

    /// Starts it: it waits for the lease, and holds it once.
    #[must_use]
    pub fn hold(self) -> Replica {
        self.start("hold")
    }

    /// Starts it: it tries to hold the lease, and does not wait.
    #[must_use]
    pub fn hold_once(self) -> Replica {
        self.start("try")
    }

    fn start(self, mode: &str) -> Replica {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(["--mode", mode]).envs(self.environment);
        // A group of its own: if the test is killed, its end reaches a paused replica too.
        command.process_group(0);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        Replica::start(&self.id, &mut command)
    }
}
