//! Files that are not ours, or not for us: refused, and left as they are.

use crate::support::{PATIENCE, Part, bid, home, lease, open, raw, won};
use leasehold_core::{Acquire, Fate, LeaseStore, Renew, Renewal, StoreError, StoreErrorKind};
use leasehold_sqlite::{Config, SqliteStore};
use std::{path::Path, time::Duration};

fn refused(path: &Path) -> StoreError {
    let error = SqliteStore::with(&Config::new(path)).map(|_| ()).expect_err("it was to be refused");
    assert!(error.to_string().contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
    error
}

#[track_caller]
fn assert_foreign(error: &StoreError, what: &str) {
    match error.kind() {
        StoreErrorKind::Foreign { found } => assert!(found.contains(what), "{found}"),
        other => panic!("it was to be called foreign: {other:?}"),
    }
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    for content in [&b"hello"[..], &[0; 4096], &[7; 100_000], b"SQLite format 2\0 and more"] {
        let (_dir, path) = home();
        std::fs::write(&path, content).unwrap();
        assert_foreign(&refused(&path), "not a SQLite database");
        assert!(std::fs::read(&path).unwrap() == content, "it was changed");
    }
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    for sql in ["CREATE TABLE lease (name TEXT)", "PRAGMA application_id = 77", "PRAGMA user_version = 3"] {
        let (_dir, path) = home();
        raw(&path).execute_batch(sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert_foreign(&refused(&path), "another application");
        assert!(std::fs::read(&path).unwrap() == before, "{sql}: it was changed");
    }
}

#[test]
fn a_store_of_a_newer_or_impossible_version_is_left_alone() {
    let (_dir, path) = home();
    drop(open(&path));
    raw(&path).execute_batch("PRAGMA user_version = 2; CREATE TABLE future (x)").unwrap();
    assert_eq!(*refused(&path).kind(), StoreErrorKind::NewerSchema { found: 2, known: 1 });
    raw(&path).execute_batch("PRAGMA user_version = 0").unwrap();
    let (key, _) = crate::support::corrupt(&refused(&path));
    assert_eq!(key, "PRAGMA user_version");
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting_for_it() {
    let (dir, path) = home();
    std::fs::create_dir(&path).unwrap();
    assert_foreign(&refused(&path), "a directory");
    let pipe = dir.path().join("pipe");
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
    assert_foreign(&refused(&pipe), "not a regular file");
    std::fs::write(dir.path().join("file"), "").unwrap();
    let error = refused(&dir.path().join("file/leases.db"));
    assert!(matches!(error.kind(), StoreErrorKind::Config(_) | StoreErrorKind::Other), "{error}");
}

#[tokio::test]
async fn an_empty_file_becomes_a_store_and_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, path) = home();
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let store = open(&path);
    won(store.acquire(&bid("feed", "a")).await);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

/// Many processes start at once on a fresh host.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_find_no_file_at_the_same_time_make_one_store() {
    for _ in 0..4 {
        let (dir, _) = home();
        let path = dir.path().join("made/with/parents/leases.db");
        let mut parts: Vec<_> = (0..6).map(|_| Part::start("open", &path, "")).collect();
        for part in &mut parts {
            assert_eq!(part.says().await, "opened");
        }
    }
}

/// A process that was ended while it made the store leaves nothing that keeps the others out.
#[tokio::test]
async fn a_store_that_was_left_half_made_is_finished() {
    let (_dir, path) = home();
    raw(&path).execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE x (y); DROP TABLE x;").unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 0);
    won(open(&path).acquire(&bid("feed", "a")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_locked_for_good_is_told_within_the_busy_timeout() {
    let (_dir, path) = home();
    drop(open(&path));
    // Not even readers get in: the lock of a process that uses the file alone.
    let conn = raw(&path);
    conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; PRAGMA user_version = 1; COMMIT")
        .unwrap();
    let config = Config::new(&path).with_busy_timeout(Duration::from_millis(60)).unwrap();
    let opening = tokio::task::spawn_blocking(move || SqliteStore::with(&config).map(|_| ()));
    let error = tokio::time::timeout(PATIENCE, opening).await.unwrap().unwrap().unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Locked(Duration::from_millis(60)), "{error}");
}

/// Somebody removes the file under a running holder. SQLite would go on with the removed one, and two would lead.
#[tokio::test]
async fn a_removed_or_replaced_file_is_noticed_and_floors_repair_the_counter() {
    let (_dir, path) = home();
    let store = open(&path);
    let claim = won(store.acquire(&bid("feed", "a")).await).claim;
    std::fs::remove_file(&path).unwrap();
    // Another process finds nothing, and makes a store of its own; its log must not be mistaken for the old one.
    let other = open(&path);
    let floor = Some(claim.fence);
    let next = won(other.acquire(&leasehold_core::Bid { floor, ..bid("feed", "b") }).await);
    assert!(next.claim.fence > claim.fence, "I2: whoever remembers repairs the counter");
    match &store.renew(&[Renewal { claim: claim.clone(), ttl: Duration::from_secs(10) }]).await[..] {
        [Renew::NotHolder(over)] => {
            assert_eq!(over.holder.as_ref().map(|(_, fence)| *fence), Some(next.claim.fence));
        }
        renewed => panic!("it must learn of it at its next renewal: {renewed:?}"),
    }
    drop(other);
    assert!(matches!(store.acquire(&bid("feed", "c")).await, Acquire::Held(_)), "both see one file again");
    drop(store);
    let record = open(&path).inspect(&lease("feed")).await.unwrap();
    assert_eq!(record.claim(), Some(&next.claim), "nothing of the new file was lost with the old one");
    assert_eq!(record.predecessor.fate(), Fate::None);
}
