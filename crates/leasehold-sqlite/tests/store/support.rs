//! Stores in temporary directories, short words for requests, and parts played by processes of their own.

use leasehold_core::{
    Acquire, AttemptId, Bid, Claim, Granted, LeaseName, LeaseRecord, LeaseStore, Parting, Release, ReplicaId,
    Sighting, StoreError, StoreErrorKind, TraceContext, Watch,
};
use leasehold_sqlite::{Config, SqliteStore};
use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// Far above what anything here needs: it turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// So long that nothing expires in a test by accident.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// A directory of its own, and the path of a store in it.
pub(crate) fn home() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leases.db");
    (dir, path)
}

pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::with(&Config::new(path)).unwrap()
}

/// A connection that knows nothing of leases, as an operator's shell has.
pub(crate) fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(crate) fn lease(name: &str) -> LeaseName {
    LeaseName::new(name).unwrap()
}

pub(crate) fn replica(id: &str) -> ReplicaId {
    ReplicaId::new(id).unwrap()
}

pub(crate) fn bid(name: &str, by: &str) -> Bid {
    Bid {
        name: lease(name),
        replica: replica(by),
        attempt: AttemptId::random(),
        ttl: LONG,
        floor: None,
        crash_witness: false,
        trace: TraceContext::NONE,
    }
}

pub(crate) fn witnessed(name: &str, by: &str) -> Bid {
    Bid { crash_witness: true, ..bid(name, by) }
}

#[track_caller]
pub(crate) fn won(answer: Acquire) -> Granted {
    match answer {
        Acquire::Granted(granted) => granted,
        other => panic!("it was to be granted: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn refused(answer: Acquire) -> StoreError {
    match answer {
        Acquire::Refused(error) => error,
        other => panic!("it was to be refused: {other:?}"),
    }
}

/// The key and the problem of damage.
#[track_caller]
pub(crate) fn corrupt(error: &StoreError) -> (String, String) {
    match error.kind() {
        StoreErrorKind::Corrupt { key, problem } => (key.to_string(), problem.to_string()),
        other => panic!("it was to be called corrupt: {other:?}"),
    }
}

pub(crate) async fn let_go(store: &SqliteStore, claim: &Claim) {
    assert_eq!(store.release(claim, &Parting::default()).await, Release::Released);
}

/// The first state of a watch for which `wanted` holds.
pub(crate) async fn until(watch: &mut Watch, wanted: impl Fn(&LeaseRecord) -> bool) -> LeaseRecord {
    let search = async {
        loop {
            match watch.next().await.expect("the watch goes on as long as its store") {
                Sighting::State(record) if wanted(&record) => return record,
                Sighting::State(_) | Sighting::Trouble(_) => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, search).await.expect("the state was not seen")
}

/// Waits until `what` is true, which no event tells.
pub(crate) async fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let waiting = async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// A part played in a process of its own. It ends with the test.
pub(crate) struct Part {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    // Closed, it tells the part to end.
    stdin: Option<ChildStdin>,
}

impl Part {
    pub(crate) fn start(role: &str, path: &Path, words: &str) -> Self {
        Self::of(Command::new(std::env::current_exe().unwrap()), role, path, words)
    }

    /// A part in a mount namespace of its own, where `dir` is a small empty disk in memory.
    pub(crate) fn start_on_small_disk(role: &str, dir: &Path, kib: u32, words: &str) -> Self {
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let script = format!("mount -t tmpfs -o size={kib}k none \"$0\" && exec \"$@\"");
        command.args(["sh", "-c", &script]).arg(dir).arg(std::env::current_exe().unwrap());
        Self::of(command, role, &dir.join("leases.db"), words)
    }

    pub(crate) fn of(mut command: Command, role: &str, path: &Path, words: &str) -> Self {
        command.args(["--exact", "parts::play", "--ignored", "--nocapture"]);
        command
            .env("LEASEHOLD_PART", role)
            .env("LEASEHOLD_PART_FILE", path)
            .env("LEASEHOLD_PART_WORDS", words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdin = child.stdin.take();
        Self { child, lines, stdin }
    }

    /// The next thing the part says.
    pub(crate) async fn says(&mut self) -> String {
        let next = async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("the part ended without a word");
                // The test harness of the other process talks too, and may begin a line.
                if let Some((_, said)) = line.split_once('@') {
                    return said.to_owned();
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.expect("the part says nothing")
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.start_kill().unwrap();
    }

    /// Tells the part to end, and waits until it has.
    pub(crate) async fn end(mut self) {
        drop(self.stdin.take());
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap();
        assert!(status.success(), "the part failed: {status}");
    }
}

impl Part {
    /// Waits until a killed part is gone, its locks included.
    pub(crate) async fn end_killed(&mut self) {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it was killed").unwrap();
        assert!(!status.success(), "it was to be killed: {status}");
    }
}
