//! Callers that give up.

use crate::support::{LONG, PATIENCE, Part, bid, home, lease, open, won};
use leasehold_core::{Acquire, LeaseStore, Renewal, StoreErrorKind};
use leasehold_sqlite::{Config, SqliteStore};
use leasehold_testkit::Stepper;
use std::{sync::Arc, time::Duration};

/// Invariant I7, B78: nobody is left holding a lease because its bidder stopped waiting while the file was locked.
#[tokio::test(flavor = "multi_thread")]
async fn a_bid_whose_caller_has_gone_is_not_begun() {
    let (_dir, path) = home();
    let config = Config::new(&path).with_busy_timeout(Duration::from_secs(20)).unwrap();
    let store = Arc::new(SqliteStore::with(&config).unwrap());
    let mut lock = Part::start("lock", &path, "");
    assert_eq!(lock.says().await, "locked");
    // The first is being carried out, and waits for the lock; the others wait behind it.
    let first = tokio::spawn({
        let store = store.clone();
        async move { store.acquire(&bid("first", "a")).await }
    });
    for n in 0..50 {
        let abandoned = Stepper::allowing(1).run(store.acquire(&bid(&format!("abandoned {n}"), "a"))).await;
        assert!(abandoned.is_none());
    }
    lock.end().await;
    won(tokio::time::timeout(PATIENCE, first).await.unwrap().unwrap());
    // A request that is answered after them: none of them is carried out later.
    won(store.acquire(&bid("last", "a")).await);
    let leases: Vec<_> =
        store.list("").await.unwrap().into_iter().map(|r| r.unwrap().name.to_string()).collect();
    assert_eq!(leases, ["first", "last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bid_whose_caller_goes_while_it_waits_for_the_lock_is_undone() {
    let (_dir, path) = home();
    let config = Config::new(&path).with_busy_timeout(Duration::from_secs(20)).unwrap();
    let store = SqliteStore::with(&config).unwrap();
    let mut lock = Part::start("lock", &path, "");
    lock.says().await;
    let wanted = bid("feed", "a");
    // Half of the time it takes to begin would do; the lock is not given up before.
    let waiting = tokio::time::timeout(Duration::from_millis(100), store.acquire(&wanted)).await;
    assert!(waiting.is_err(), "the file is locked: {waiting:?}");
    lock.end().await;
    won(store.acquire(&bid("other duty", "a")).await);
    let record = store.inspect(&lease("feed")).await.unwrap();
    assert_eq!((record.claim(), record.counter), (None, None), "as if never asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_file_is_told_apart_from_a_held_lease_and_from_an_unknown_outcome() {
    let (_dir, path) = home();
    let config = Config::new(&path).with_busy_timeout(Duration::from_millis(50)).unwrap();
    let store = SqliteStore::with(&config).unwrap();
    let claim = won(store.acquire(&bid("feed", "a")).await).claim;
    let mut lock = Part::start("lock", &path, "");
    lock.says().await;
    // B82. Readers are not kept out, so a living claim is still told.
    assert!(matches!(store.acquire(&bid("feed", "b")).await, Acquire::Held(_)));
    let error = crate::support::refused(store.acquire(&bid("free", "b")).await);
    assert_eq!(*error.kind(), StoreErrorKind::Locked(Duration::from_millis(50)));
    assert_eq!(error.lease(), Some(&lease("free")));
    match &store.renew(&[Renewal { claim: claim.clone(), ttl: LONG }]).await[..] {
        [leasehold_core::Renew::Refused(error)] => {
            assert_eq!(*error.kind(), StoreErrorKind::Locked(Duration::from_millis(50)));
            assert_eq!(error.lease(), Some(&lease("feed")));
        }
        other => panic!("{other:?}"),
    }
    let error = SqliteStore::with(&config).map(|_| ()).err();
    assert_eq!(error.map(|error| error.to_string()), None, "an open needs no write lock");
    lock.end().await;
    won(store.acquire(&bid("free", "b")).await);
}

/// B79: every answer belongs to its question, whoever gave up in between.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_never_mixed_up_by_callers_that_give_up() {
    let (_dir, path) = home();
    let store = Arc::new(open(&path));
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for round in 0..30 {
                    let wanted = bid(&format!("lease {task}"), &format!("replica {task}"));
                    let patience = Duration::from_micros(100 * round);
                    if let Ok(answer) = tokio::time::timeout(patience, store.acquire(&wanted)).await {
                        match answer {
                            Acquire::Granted(granted) => {
                                assert_eq!(granted.claim, wanted.granted(granted.claim.fence));
                            }
                            // Of an earlier round that gave up just after the commit.
                            Acquire::Held(held) => assert_eq!(held.by, wanted.replica),
                            other => panic!("{other:?}"),
                        }
                    }
                    let record = store.inspect(&wanted.name).await.unwrap();
                    assert_eq!(record.name, wanted.name);
                    if let Some(claim) = record.claim() {
                        assert_eq!(claim.replica, wanted.replica);
                        crate::support::let_go(&store, claim).await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    }
}
