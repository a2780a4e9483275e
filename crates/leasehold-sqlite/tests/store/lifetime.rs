//! Invariant I11: what ends with a store.

use crate::support::{PATIENCE, Part, bid, eventually, home, open, replica, witnessed, won};
use leasehold_core::{LeaseStore, Mail, Scope, Sighting};
use leasehold_sqlite::{Config, SqliteStore};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Threads of this process that belong to a store.
fn threads_of_stores() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("leasehold-") || name.starts_with("notify-rs")).count()
}

fn files_open(under: &Path) -> Vec<PathBuf> {
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).filter(|file| file.starts_with(under)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_inboxes_files_and_locks_end_with_their_store() {
    let (dir, path) = home();
    let root = dir.path().canonicalize().unwrap();
    let store = open(&path);
    won(store.acquire(&witnessed("feed", "a")).await);
    let mut watch = store.watch(Scope::All).await.unwrap();
    let mut inbox = store.inbox(&replica("a")).await.unwrap();
    assert!(!files_open(&root).is_empty());
    drop(store);
    let ended = async {
        while let Some(Sighting::State(_) | Sighting::Trouble(_)) = watch.next().await {}
        assert!(inbox.next().await.is_none());
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("they end with the store");
    // The listener's thread ends by itself.
    eventually("all files are closed", || files_open(&root).is_empty()).await;
}

/// In a process of its own, whose threads can be counted.
#[tokio::test(flavor = "multi_thread")]
async fn stores_that_come_and_go_leave_no_thread() {
    let (_dir, path) = home();
    let mut part = Part::start("come and go", &path, "");
    assert_eq!(part.says().await, "no thread is left");
    part.end().await;
}

pub(crate) async fn come_and_go(path: &Path) {
    assert_eq!(threads_of_stores(), 0);
    for _ in 0..20 {
        let store = open(path);
        let _watch = store.watch(Scope::All).await.unwrap();
        // A thread takes its name a moment after it was started.
        eventually("one writes, one looks, one listens", || threads_of_stores() == 3).await;
        drop(store);
        eventually("the threads have ended", || threads_of_stores() == 0).await;
    }
}

/// A store that waits for another process's lock does not hold up whoever drops it.
#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_store_does_not_wait_for_a_lock() {
    let (_dir, path) = home();
    let config = Config::new(&path).with_busy_timeout(Duration::from_secs(60)).unwrap();
    let store = SqliteStore::with(&config).unwrap();
    let mut lock = Part::start("lock", &path, "");
    lock.says().await;
    let waiting = tokio::time::timeout(Duration::from_millis(50), store.acquire(&bid("feed", "a"))).await;
    assert!(waiting.is_err(), "the file is locked");
    let dropping = tokio::task::spawn_blocking(move || drop(store));
    tokio::time::timeout(PATIENCE, dropping).await.expect("it does not wait for the lock").unwrap();
    lock.end().await;
}

/// When nobody watches, nobody listens either.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_nobody_watches_listens_to_nothing() {
    let (_dir, path) = home();
    let mut part = Part::start("listen", &path, "");
    assert_eq!(part.says().await, "it listens to nothing");
    part.end().await;
}

pub(crate) async fn listen(path: &Path) {
    let config = Config::new(path).with_safety_poll(Duration::from_millis(10)).unwrap();
    let store = SqliteStore::with(&config).unwrap();
    let listeners = || {
        let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let files = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        files.filter(|file| file.ends_with("anon_inode:inotify")).count()
    };
    assert_eq!(listeners(), 0);
    let watch = store.watch(Scope::All).await.unwrap();
    let inbox = store.inbox(&replica("a")).await.unwrap();
    assert_eq!(listeners(), 1, "however many watch");
    drop((watch, inbox));
    eventually("the listener is gone", || listeners() == 0).await;
}
