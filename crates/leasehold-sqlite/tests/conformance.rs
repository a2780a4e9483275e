//! The contract of a store, over a SQLite file that is seen through two connections.
// The processes of these tests are watched through /proc, namespaces and pidfds.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test panics by design, in its helpers too")]

use leasehold_core::{BoxFuture, LeaseName, ManualClock, ReplicaId};
use leasehold_sqlite::{Config, SqliteStore};
use leasehold_testkit::conformance::Subject;
use rustix::{
    fs::FlockOperation,
    process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open},
};
use std::{
    os::fd::RawFd,
    path::{Path, PathBuf},
    sync::Arc,
};

leasehold_testkit::conformance!(fresh);

async fn fresh() -> Subject {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leases.db");
    let clock = ManualClock::default();
    let open = || {
        let config = Config::new(&path).with_clock(Arc::new(clock.clone()));
        Arc::new(SqliteStore::with(&config).unwrap())
    };
    let (store, other) = (open(), open());
    let (damaged, crashed) = (path.clone(), path.clone());
    Subject::new(store, other, clock.clone())
        .keeping(dir)
        .damaged_by(move |name| damage(damaged.clone(), name))
        .crashed_by(move |_: ReplicaId| crash(&crashed))
}

/// What no program of ours would write: a fence below zero.
fn damage(path: PathBuf, name: LeaseName) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let conn = rusqlite::Connection::open(path).unwrap();
        let sql = "UPDATE lease SET counter = -1 WHERE name = ?1";
        assert_eq!(conn.execute(sql, [name.as_str()]).unwrap(), 1);
    })
}

/// What the kernel does when it ends a process: it lets the locks of its files go, and leaves the files. All locks of
/// witnesses in this process, that is of its one store that has any. (Real processes are killed in `tests/store`.)
fn crash(path: &Path) -> BoxFuture<'static, ()> {
    let mut witnesses = path.as_os_str().to_owned();
    witnesses.push("-witness/");
    let witnesses = PathBuf::from(witnesses).canonicalize().unwrap();
    Box::pin(async move {
        let this_process = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let mut let_go = 0;
        for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
            if std::fs::read_link(entry.path()).is_ok_and(|file| file.parent() == Some(&witnesses)) {
                let number: RawFd = entry.file_name().to_str().unwrap().parse().unwrap();
                let same_file = pidfd_getfd(&this_process, number, PidfdGetfdFlags::empty()).unwrap();
                rustix::fs::flock(same_file, FlockOperation::Unlock).unwrap();
                let_go += 1;
            }
        }
        assert_eq!(let_go, 1, "one store has a witness");
    })
}
