//! Who is woken by what, over processes.

use crate::support::{LONG, PATIENCE, Part, beside, bid, home, lease, let_go, open, raw, until, won};
use leasehold_core::{Fate, LeaseStore, Renewal, Scope, Sighting};
use leasehold_sqlite::{Config, SqliteStore};
use std::time::Duration;

/// A store that would notice nothing by itself for a minute: whatever it sees before, an event told.
fn unobservant(path: &std::path::Path) -> SqliteStore {
    SqliteStore::with(&Config::new(path).with_safety_poll(Duration::from_secs(60)).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_wakes_a_waiter_in_another_process() {
    let (_dir, path) = home();
    let store = unobservant(&path);
    let mut claim = won(store.acquire(&bid("feed", "a")).await).claim;
    // Several times: a subscription that is used up by its first event is none (B98).
    for _ in 0..3 {
        let mut waiter = Part::start("wait", &path, "feed b");
        assert_eq!(waiter.says().await, "waiting");
        let_go(&store, &claim).await;
        let fence = claim.fence.get() + 1;
        assert_eq!(waiter.says().await, format!("granted {fence} released"));
        store
            .force_release(&lease("feed"), &crate::support::replica("ops"), "next round")
            .await
            .assert_forced();
        claim = won(store.acquire(&bid("feed", "a")).await).claim;
        waiter.end().await;
    }
}

trait AssertForced {
    fn assert_forced(self);
}

impl AssertForced for leasehold_core::Force {
    fn assert_forced(self) {
        assert!(matches!(self, Self::Forced { .. }), "{self:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_alone_tell_every_change_of_hands() {
    let (_dir, path) = home();
    let (store, other) = (open(&path), unobservant(&path));
    let mut watch = other.watch(Scope::Names(vec![lease("feed")])).await.unwrap();
    for round in 1..=20 {
        let claim = won(store.acquire(&bid("feed", "a")).await).claim;
        assert_eq!(claim.fence.get(), round);
        until(&mut watch, |record| record.claim() == Some(&claim)).await;
        let_go(&store, &claim).await;
        let seen = until(&mut watch, |record| record.claim().is_none()).await;
        assert_eq!(seen.predecessor.fence(), Some(claim.fence));
    }
}

/// An idle candidate reads nothing and writes nothing, whatever the holder does.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_rings_no_bell() {
    let (_dir, path) = home();
    let store = open(&path);
    let claim = won(store.acquire(&bid("feed", "a")).await).claim;
    let bell = || {
        let found = std::fs::metadata(beside(&path, "-wake")).unwrap();
        found.modified().unwrap()
    };
    let before = bell();
    for _ in 0..20 {
        let renewed = store.renew(&[Renewal { claim: claim.clone(), ttl: LONG }]).await;
        assert!(matches!(renewed[..], [leasehold_core::Renew::Renewed { .. }]), "{renewed:?}");
    }
    assert_eq!(bell(), before);
    let_go(&store, &claim).await;
    assert_ne!(bell(), before, "a release rings it");
}

/// B98 (b): the record changes by other means, and no event tells.
#[tokio::test(flavor = "multi_thread")]
async fn the_safety_poll_finds_what_no_event_told() {
    let (_dir, path) = home();
    let store =
        SqliteStore::with(&Config::new(&path).with_safety_poll(Duration::from_millis(10)).unwrap()).unwrap();
    let claim = won(store.acquire(&bid("feed", "a")).await).claim;
    won(store.acquire(&bid("other duty", "a")).await);
    let mut watch = store.watch(Scope::All).await.unwrap();
    until(&mut watch, |record| record.claim() == Some(&claim)).await;
    raw(&path).execute_batch("UPDATE lease SET boot = 'an earlier one' WHERE name = 'feed'").unwrap();
    let seen = until(&mut watch, |record| record.name == lease("feed")).await;
    assert_eq!((seen.claim(), seen.predecessor.fate()), (None, Fate::Expired));
    raw(&path).execute_batch("DELETE FROM lease WHERE name = 'other duty'").unwrap();
    let seen =
        until(&mut watch, |record| record.name == lease("other duty") && record.claim().is_none()).await;
    assert_eq!(seen.counter, None, "nothing is known of it any more");
}

/// A bell that somebody removes is hung up again.
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_bell_is_missed_for_one_safety_poll_at_most() {
    let (_dir, path) = home();
    let observant = || {
        let config = Config::new(&path).with_safety_poll(Duration::from_millis(10)).unwrap();
        SqliteStore::with(&config).unwrap()
    };
    let (store, other) = (observant(), observant());
    let mut watch = other.watch(Scope::All).await.unwrap();
    for round in 0..3 {
        let claim = won(store.acquire(&bid("feed", "a")).await).claim;
        until(&mut watch, |record| record.claim() == Some(&claim)).await;
        std::fs::remove_file(beside(&path, "-wake")).unwrap();
        if round == 1 {
            std::fs::remove_dir_all(beside(&path, "-witness")).unwrap();
        }
        let_go(&store, &claim).await;
        until(&mut watch, |record| record.claim().is_none()).await;
        crate::support::eventually("the bell is back", || beside(&path, "-wake").exists()).await;
    }
}

/// Rule 7 lets an expiry go untold; this store tells it, without a poll.
#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_is_told_when_it_happens() {
    let (_dir, path) = home();
    let (store, other) = (open(&path), unobservant(&path));
    let short = leasehold_core::Bid { ttl: Duration::from_millis(200), ..bid("feed", "a") };
    won(store.acquire(&short).await);
    let mut watch = other.watch(Scope::All).await.unwrap();
    let seen = until(&mut watch, |record| record.claim().is_none()).await;
    assert_eq!(seen.predecessor.fate(), Fate::Expired);
}

/// Trouble with one record is told once, and hides no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_does_not_interrupt_the_watch_of_the_others() {
    let (_dir, path) = home();
    let store = open(&path);
    won(store.acquire(&bid("damaged", "a")).await);
    raw(&path).execute_batch("UPDATE lease SET counter = 0 WHERE name = 'damaged'").unwrap();
    let mut watch = store.watch(Scope::All).await.unwrap();
    let claim = won(store.acquire(&bid("sound", "a")).await).claim;
    let (mut trouble, mut held) = (0, false);
    while trouble == 0 || !held {
        match tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().unwrap() {
            Sighting::Trouble(error) => {
                assert_eq!(error.lease(), Some(&lease("damaged")), "{error}");
                trouble += 1;
            }
            Sighting::State(record) => held |= record.claim() == Some(&claim),
        }
    }
    let_go(&store, &claim).await;
    until(&mut watch, |record| record.name == lease("sound") && record.claim().is_none()).await;
    assert_eq!(trouble, 1);
}

/// Linux gives a user few listeners, and a crowd of processes may have used them up.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_gets_no_events_still_wakes() {
    let (_dir, path) = home();
    let store = open(&path);
    let claim = won(store.acquire(&bid("feed", "a")).await).claim;
    let mut command = tokio::process::Command::new("unshare");
    let script = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"";
    command
        .args(["--user", "--map-root-user", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap());
    let mut waiter = Part::of(command, "wait", &path, "feed b");
    assert_eq!(waiter.says().await, "no-events", "its doctor says so");
    assert_eq!(waiter.says().await, "waiting");
    let_go(&store, &claim).await;
    assert_eq!(waiter.says().await, "granted 2 released");
    waiter.end().await;
}
