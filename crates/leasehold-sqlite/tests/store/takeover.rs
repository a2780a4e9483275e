//! Takeover after a crash: the operating system's word against a ttl of an hour.

use crate::support::{Part, beside, bid, eventually, home, lease, open, until, witnessed, won};
use leasehold_core::{Acquire, Fate, LeaseState, LeaseStore, Scope};
use std::path::Path;

fn witnesses(path: &Path) -> Vec<std::path::PathBuf> {
    let dir = beside(path, "-witness");
    std::fs::read_dir(dir).map(|dir| dir.map(|file| file.unwrap().path()).collect()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_leads_at_once_after_a_sigkill_and_learns_of_the_crash() {
    let (_dir, path) = home();
    let mut holder = Part::start("hold", &path, "feed");
    assert_eq!(holder.says().await, "granted 1");
    let mut waiter = Part::start("wait", &path, "feed b");
    assert_eq!(waiter.says().await, "waiting");
    holder.kill();
    // Its claim had an hour to go: nothing but the witness can have ended it.
    assert_eq!(waiter.says().await, "granted 2 crashed");
    waiter.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bid_without_a_watch_finds_the_crash_too() {
    let (_dir, path) = home();
    let mut holder = Part::start("hold", &path, "feed");
    holder.says().await;
    let store = open(&path);
    assert!(matches!(store.acquire(&bid("feed", "b")).await, Acquire::Held(_)));
    holder.kill();
    holder.end_killed().await;
    let granted = won(store.acquire(&bid("feed", "b")).await);
    assert_eq!((granted.predecessor.fate(), granted.claim.fence.get()), (Fate::Crashed, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_claim_of_a_crashed_process_ends_with_the_first_that_is_noticed() {
    let (_dir, path) = home();
    let mut holder = Part::start("hold", &path, "one two three");
    for _ in 0..3 {
        assert_eq!(holder.says().await, "granted 1");
    }
    let store = open(&path);
    let mut watch = store.watch(Scope::All).await.unwrap();
    holder.kill();
    // In whatever order they are told: nothing says that the first name is seen first.
    let mut still_held = vec![lease("one"), lease("two"), lease("three")];
    while !still_held.is_empty() {
        let seen =
            until(&mut watch, |record| still_held.contains(&record.name) && record.claim().is_none()).await;
        assert_eq!(seen.predecessor.fate(), Fate::Crashed);
        still_held.retain(|name| *name != seen.name);
    }
    assert_eq!(witnesses(&path).len(), 1, "looking changes nothing");
    assert_eq!(won(store.acquire(&bid("two", "b")).await).predecessor.fate(), Fate::Crashed);
    // The proof was used up in one transaction with all its consequences.
    assert_eq!(witnesses(&path), Vec::<std::path::PathBuf>::new());
    for name in ["one", "three"] {
        assert_eq!(won(store.acquire(&bid(name, "b")).await).predecessor.fate(), Fate::Crashed, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_the_holder_started_does_not_keep_its_lease() {
    let (_dir, path) = home();
    let mut holder = Part::start("hold", &path, "feed +child");
    holder.says().await;
    let child = holder.says().await;
    let child: i32 = child.strip_prefix("child ").unwrap().parse().unwrap();
    let child = rustix::process::Pid::from_raw(child).unwrap();
    let store = open(&path);
    let mut watch = store.watch(Scope::All).await.unwrap();
    holder.kill();
    let seen = until(&mut watch, |record| record.claim().is_none()).await;
    assert_eq!(seen.predecessor.fate(), Fate::Crashed);
    // It was alive all the time.
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_witness_proves_nothing() {
    let (_dir, path) = home();
    let mut holder = Part::start("hold", &path, "feed");
    holder.says().await;
    let files = witnesses(&path);
    assert_eq!(files.len(), 1);
    std::fs::remove_file(&files[0]).unwrap();
    let store = open(&path);
    for _ in 0..2 {
        let answer = store.acquire(&bid("feed", "b")).await;
        assert!(matches!(answer, Acquire::Held(_)), "the holder lives: {answer:?}");
        holder.kill();
        holder.end_killed().await;
    }
}

/// A copy of the witness is nobody's witness: nobody ever locked it.
#[tokio::test(flavor = "multi_thread")]
async fn a_copied_or_foreign_witness_proves_nothing() {
    let (_dir, path) = home();
    let mut holder = Part::start("hold", &path, "feed");
    holder.says().await;
    let file = witnesses(&path).remove(0);
    let copy = file.with_file_name("copy");
    std::fs::copy(&file, &copy).unwrap();
    std::fs::rename(&copy, &file).unwrap();
    let store = open(&path);
    assert!(matches!(store.acquire(&bid("feed", "b")).await, Acquire::Held(_)));
    std::fs::remove_file(&file).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    // Opening a pipe would wait for its other end.
    assert!(matches!(store.acquire(&bid("feed", "b")).await, Acquire::Held(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_store_is_not_a_crash() {
    let (_dir, path) = home();
    let (store, other) = (open(&path), open(&path));
    let claim = won(store.acquire(&witnessed("feed", "a")).await).claim;
    let mut watch = other.watch(Scope::All).await.unwrap();
    drop(store);
    assert_eq!(witnesses(&path), Vec::<std::path::PathBuf>::new(), "it took its witness away");
    // Its work may still be running in this process: the ttl decides.
    match other.acquire(&bid("feed", "b")).await {
        Acquire::Held(held) => assert_eq!(held.fence, claim.fence),
        answer => panic!("{answer:?}"),
    }
    let seen = until(&mut watch, |_| true).await;
    assert_eq!(seen.claim(), Some(&claim));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_of_one_process_have_witnesses_of_their_own() {
    let (_dir, path) = home();
    let (one, two) = (open(&path), open(&path));
    won(one.acquire(&witnessed("feed", "a")).await);
    won(two.acquire(&witnessed("other duty", "a")).await);
    won(two.acquire(&witnessed("third duty", "a")).await);
    assert_eq!(witnesses(&path).len(), 2);
    for (store, name) in [(&one, "other duty"), (&two, "feed")] {
        assert!(matches!(store.acquire(&bid(name, "b")).await, Acquire::Held(_)), "{name}");
        let record = store.inspect(&lease(name)).await.unwrap();
        assert!(matches!(record.state, LeaseState::Held { crash_witness: true, .. }), "{record:?}");
    }
}

/// Invariant I11: what ended processes leave behind is swept by whoever comes next.
#[tokio::test(flavor = "multi_thread")]
async fn witnesses_that_nobody_needs_are_swept() {
    let (_dir, path) = home();
    let mut holder = Part::start("hold", &path, "feed");
    holder.says().await;
    let unfinished = beside(&path, "-witness").join(".new-0123");
    std::fs::write(&unfinished, "").unwrap();
    holder.kill();
    holder.end_killed().await;
    // Needed as the proof of the crash.
    let store = open(&path);
    assert_eq!(witnesses(&path).len(), 1);
    won(store.acquire(&bid("feed", "b")).await);
    eventually("the witness is buried", || witnesses(&path).is_empty()).await;

    let mut holder = Part::start("hold", &path, "another");
    holder.says().await;
    crate::support::raw(&path).execute_batch("DELETE FROM lease WHERE name = 'another'").unwrap();
    holder.kill();
    holder.end_killed().await;
    assert_eq!(witnesses(&path).len(), 1);
    drop(open(&path));
    assert_eq!(witnesses(&path), Vec::<std::path::PathBuf>::new());
}
