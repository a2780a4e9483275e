//! Gates over processes.

use crate::support::{PATIENCE, Part, beside, bid, home, lease, let_go, open, won};
use leasehold_core::{Admit, FenceGate, LeaseStore, ResourceName};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_opens_when_its_holder_leaves_or_is_killed() {
    let (_dir, path) = home();
    let store = open(&path);
    let old = won(store.acquire(&bid("feed", "a")).await).claim;
    let_go(&store, &old).await;
    let new = won(store.acquire(&bid("feed", "b")).await).claim.fence;
    let file = ResourceName::new("file").unwrap();
    for killed in [false, true] {
        let fence = if killed { new } else { old.fence };
        let mut part = Part::start("gate", &path, &fence.to_string());
        assert_eq!(part.says().await, "held");
        let feed = lease("feed");
        let mut waiting = std::pin::pin!(store.hold_gate(&file, &feed, new));
        let early = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
        assert!(early.is_err(), "somebody holds it: {early:?}");
        if killed {
            part.kill();
        } else {
            part.end().await;
        }
        let held =
            tokio::time::timeout(PATIENCE, waiting).await.expect("the gate opened").expect("a high fence");
        // Now the other process would have to wait, and being stale does not even queue.
        if !killed {
            let refused = store.hold_gate(&file, &feed, old.fence).await;
            assert!(matches!(refused, Err(Admit::Stale(_))), "{refused:?}");
        }
        drop(held);
    }
}

/// Whoever locked a file that was removed keeps nobody out, and so has not passed.
#[tokio::test(flavor = "multi_thread")]
async fn a_gate_file_that_somebody_removes_is_made_again() {
    let (_dir, path) = home();
    let store = open(&path);
    let fence = won(store.acquire(&bid("feed", "a")).await).claim.fence;
    let (file, feed) = (ResourceName::new("file").unwrap(), lease("feed"));
    drop(store.hold_gate(&file, &feed, fence).await.unwrap());
    std::fs::remove_dir_all(beside(&path, "-gates")).unwrap();
    let held = store.hold_gate(&file, &feed, fence).await.unwrap();
    let other = open(&path);
    let second = tokio::time::timeout(Duration::from_millis(100), other.hold_gate(&file, &feed, fence)).await;
    assert!(second.is_err(), "it is held: {second:?}");
    drop(held);
}
