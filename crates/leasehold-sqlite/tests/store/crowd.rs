//! Many candidates, in one process and in several.

use crate::support::{PATIENCE, Part, bid, home, lease, let_go, open, raw, until, won};
use leasehold_core::{Acquire, LeaseStore, Scope};
use std::{collections::BTreeSet, sync::Arc};

/// Invariants I2 and I3, over processes that all say to be the same replica (a common mistake in deployments).
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_share_a_replica_id_share_no_fence() {
    let (_dir, path) = home();
    let mut parts: Vec<_> = (0..3).map(|_| Part::start("contend", &path, "feed 20")).collect();
    let mut all = BTreeSet::new();
    for part in &mut parts {
        let fences: Vec<u64> = part.says().await.split(',').map(|fence| fence.parse().unwrap()).collect();
        assert!(fences.is_sorted(), "I2: {fences:?}");
        all.extend(fences);
    }
    // Each of the sixty terms had a fence of its own, and no other term took place.
    assert_eq!(all, (1..=60).collect());
    for part in parts {
        part.end().await;
    }
}

/// Two hundred candidates wait. Their waiting costs no commit, and the vacancy is filled once.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_crowd_writes_nothing_until_there_is_something_to_win() {
    let (_dir, path) = home();
    let store = Arc::new(open(&path));
    let claim = won(store.acquire(&bid("feed", "incumbent")).await).claim;
    let others = raw(&path);
    let commits_seen = || others.query_row("PRAGMA data_version", (), |row| row.get::<_, i64>(0)).unwrap();
    let before = commits_seen();
    let mut crowd = Vec::new();
    for n in 0..200 {
        let watch = store.watch(Scope::Names(vec![lease("feed")])).await.unwrap();
        let wanted = bid("feed", &format!("candidate {n}"));
        assert!(matches!(store.acquire(&wanted).await, Acquire::Held(_)));
        crowd.push((watch, wanted));
    }
    assert_eq!(commits_seen(), before, "a bid that meets a living claim changes nothing");

    let waiting: Vec<_> = crowd
        .into_iter()
        .map(|(mut watch, wanted)| {
            let (store, old) = (store.clone(), claim.clone());
            tokio::spawn(async move {
                // Vacant, or by then somebody else's: states are coalesced.
                until(&mut watch, |record| record.claim() != Some(&old)).await;
                match store.acquire(&wanted).await {
                    Acquire::Granted(granted) => Some(granted.claim),
                    Acquire::Held(_) => None,
                    other => panic!("{other:?}"),
                }
            })
        })
        .collect();
    let_go(&store, &claim).await;
    let mut won = Vec::new();
    for candidate in waiting {
        won.extend(tokio::time::timeout(PATIENCE, candidate).await.unwrap().unwrap());
    }
    assert_eq!(won.iter().map(|claim| claim.fence.get()).collect::<Vec<_>>(), [2], "I3");
}

/// Invariant I2 over processes that are killed in the middle of whatever they are doing.
#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_leave_whole_changes_behind() {
    let (_dir, path) = home();
    let mut highest = 0;
    for round in 0..8 {
        let mut churner = Part::start("churn", &path, "feed");
        for _ in 0..=round * 3 {
            let fence: u64 = churner.says().await.parse().unwrap();
            assert!(fence > highest, "I2: {fence} after {highest}");
            highest = fence;
        }
        churner.kill();
        churner.end_killed().await;
    }
    let store = open(&path);
    let record = store.inspect(&lease("feed")).await.unwrap();
    assert!(record.claim().is_none(), "its witness is dead: {record:?}");
    let next = won(store.acquire(&bid("feed", "survivor")).await).claim.fence;
    assert!(next.get() > highest, "I2");
    let findings = store.diagnose().await.unwrap();
    assert!(findings.iter().all(|f| f.code != "corrupt" && f.code != "damaged-rows"), "{findings:?}");
}
