//! Fences over everything that Redis can forget: invariants I1 and I2.

use crate::common::{bid, eventually, keys, lease, open, refused, win, won};
use leasehold_core::{
    Acquire, Admit, Fence, FenceGate, LeaseStore, Parting, Release, ResourceName, StoreErrorKind,
};
use leasehold_testkit::redis::Redis;

/// A candidate that remembers.
fn knowing(floor: Fence) -> leasehold_core::Bid {
    let mut bid = bid("job", "me");
    bid.floor = Some(floor);
    bid
}

#[tokio::test]
async fn a_store_that_forgot_everything_is_repaired_by_whoever_remembers() {
    let mut server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let mut highest = win(&store, "job").await.claim.fence;
    for how in ["FLUSHALL", "DEL", "restart"] {
        match how {
            "FLUSHALL" => drop(server.cli(&["FLUSHALL"])),
            "DEL" => drop(server.cli(&["DEL", "leasehold:{job}:claim", "leasehold:{job}:fence"])),
            _ => server.restart().await.unwrap(),
        }
        assert_eq!(keys(&server), [""; 0], "{how}");
        let mut granted = None;
        eventually("a grant", async || {
            if let leasehold_core::Acquire::Granted(new) = store.acquire(&knowing(highest)).await {
                granted = Some(new);
            }
            granted.is_some()
        })
        .await;
        let fence = granted.unwrap().claim.fence;
        assert!(fence > highest, "{how}: {fence} after {highest}");
        highest = fence;
    }
}

/// A counter that was lost under a claim that lives on.
#[tokio::test]
async fn a_claim_alone_still_knows_its_fence() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    for _ in 0..3 {
        let granted = win(&store, "job").await;
        crate::common::let_go(&store, &granted.claim).await;
    }
    let granted = win(&store, "job").await;
    server.cli(&["DEL", "leasehold:{job}:fence"]);
    assert_eq!(store.inspect(&lease("job")).await.unwrap().counter, Some(granted.claim.fence));
    assert_eq!(store.list("").await.unwrap().len(), 1, "it is listed, too");
    crate::common::let_go(&store, &granted.claim).await;
    assert_eq!(win(&store, "job").await.claim.fence.get(), granted.claim.fence.get() + 1);
}

/// I2: while the lease is kept for an heir, nobody renews and nobody holds; whoever comes next is above the last term.
#[tokio::test]
async fn a_reservation_alone_still_knows_the_fence_of_the_term_before() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    for _ in 0..4 {
        let granted = win(&store, "job").await;
        crate::common::let_go(&store, &granted.claim).await;
    }
    let last = win(&store, "job").await.claim;
    let heir = crate::common::replica("heir");
    let parting = Parting { heir: Some((heir, crate::common::TTL)), ..Parting::default() };
    assert_eq!(store.release(&last, &parting).await, Release::Released);
    server.cli(&["DEL", "leasehold:{job}:fence"]);
    assert_eq!(store.inspect(&lease("job")).await.unwrap().counter, Some(last.fence));
    let answer = store.acquire(&bid("job", "other")).await;
    assert!(matches!(&answer, Acquire::Held(held) if held.fence == last.fence), "{answer:?}");
    let disk = ResourceName::new("disk").unwrap();
    assert_eq!(store.admit(&disk, &lease("job"), last.fence).await, Admit::Accepted, "it was issued");
    let next = won(store.acquire(&bid("job", "heir")).await);
    assert_eq!(next.claim.fence.get(), last.fence.get() + 1);
}

/// A counter that somebody set back: the last term remembers its own.
#[tokio::test]
async fn a_counter_that_was_set_back_gives_no_fence_twice() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let mut highest = win(&store, "job").await.claim;
    for damage in [
        &["HSET", "leasehold:{job}:fence", "counter", "1"][..],
        &["HDEL", "leasehold:{job}:fence", "counter"],
    ] {
        for _ in 0..3 {
            crate::common::let_go(&store, &highest).await;
            highest = win(&store, "job").await.claim;
        }
        server.cli(damage);
        crate::common::let_go(&store, &highest).await;
        let next = win(&store, "job").await.claim;
        assert_eq!(next.fence.get(), highest.fence.get() + 1, "{damage:?}");
        highest = next;
    }
}

/// I2: whoever holds the lease has the only memory of its fence, and gives it back before the memory ends with the claim.
#[tokio::test]
async fn a_counter_that_was_set_back_under_a_claim_is_mended_by_its_renewal_and_by_its_end() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let fence = "leasehold:{job}:fence";
    let old = win(&store, "job").await;
    // What the hash was, as from a copy that is behind.
    let copy: Vec<String> = ["counter", "term", "fate", "past"]
        .iter()
        .flat_map(|field| [(*field).to_owned(), server.cli(&["HGET", fence, field]).text()])
        .collect();
    let put_back = || {
        let mut words = vec!["HSET", fence];
        words.extend(copy.iter().map(String::as_str));
        server.cli(&words);
    };
    crate::common::let_go(&store, &old.claim).await;
    let mut highest = old.claim.fence.get();
    for (damage, renewed) in [("back", true), ("lost", true), ("back", false), ("lost", false)] {
        for _ in 0..10 {
            let claim = win(&store, "job").await.claim;
            crate::common::let_go(&store, &claim).await;
        }
        let claim = win(&store, "job").await.claim;
        assert!(claim.fence.get() > highest, "{damage} {renewed}");
        highest = claim.fence.get();
        match damage {
            "back" => put_back(),
            _ => drop(server.cli(&["DEL", fence])),
        }
        if renewed {
            assert!(matches!(
                crate::common::renew(&store, &claim).await,
                leasehold_core::Renew::Renewed { .. }
            ));
            // It expires.
            server.cli(&["DEL", "leasehold:{job}:claim"]);
        } else {
            crate::common::let_go(&store, &claim).await;
            let next = store.inspect(&lease("job")).await.unwrap().predecessor;
            assert_eq!(next.ended().map(|ended| ended.fence), Some(claim.fence), "{damage}");
        }
        let next = win(&store, "job").await.claim;
        assert!(next.fence.get() > highest, "{damage} {renewed}: {} after {highest}", next.fence);
        highest = next.fence.get();
        crate::common::let_go(&store, &next).await;
    }
}

#[tokio::test]
async fn the_counter_survives_a_reload_and_a_restart_with_a_file() {
    let mut server = Redis::new().appendonly("always").start().await.unwrap();
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    server.cli(&["DEBUG", "RELOAD"]);
    crate::common::let_go(&store, &granted.claim).await;
    server.kill().await;
    server.restart().await.unwrap();
    let mut next = None;
    eventually("a grant", async || {
        if let leasehold_core::Acquire::Granted(new) = store.acquire(&bid("job", "me")).await {
            next = Some(new);
        }
        next.is_some()
    })
    .await;
    assert_eq!(next.unwrap().claim.fence.get(), 2);
}

#[tokio::test]
async fn the_last_fences_are_exact_and_then_there_are_no_more() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let max = Fence::MAX.get();
    let granted = won(store.acquire(&knowing(Fence::new(max - 2).unwrap())).await);
    assert_eq!(granted.claim.fence.get(), max - 1);
    crate::common::let_go(&store, &granted.claim).await;
    let granted = win(&store, "job").await;
    assert_eq!(granted.claim.fence, Fence::MAX);
    crate::common::let_go(&store, &granted.claim).await;
    assert_eq!(refused(store.acquire(&bid("job", "me")).await), StoreErrorKind::FenceExhausted(Fence::MAX));
    assert_eq!(server.cli(&["HGET", "leasehold:{job}:fence", "counter"]).text(), max.to_string());
}

/// I1 at a gate, whatever became of the counter.
#[tokio::test]
async fn a_gate_never_takes_a_lower_fence_after_the_counter_was_lost() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let resource = ResourceName::new("disk").unwrap();
    let mut fences = Vec::new();
    for _ in 0..3 {
        let granted = win(&store, "job").await;
        fences.push(granted.claim.fence);
        crate::common::let_go(&store, &granted.claim).await;
    }
    assert_eq!(store.admit(&resource, &lease("job"), fences[2]).await, Admit::Accepted);
    server.cli(&["DEL", "leasehold:{job}:fence"]);
    // What was accepted is accepted again, what is below it is stale, and of what is above it nobody knows anything.
    assert_eq!(store.admit(&resource, &lease("job"), fences[2]).await, Admit::Accepted);
    let answer = store.admit(&resource, &lease("job"), fences[1]).await;
    assert!(matches!(&answer, Admit::Stale(stale) if stale.highest == fences[2]), "{answer:?}");
    let above = Fence::new(fences[2].get() + 1).unwrap();
    let answer = store.admit(&resource, &lease("job"), above).await;
    let Admit::Refused(error) = &answer else { panic!("{answer:?}") };
    let never =
        StoreErrorKind::NeverIssued { fence: above, highest: Some(fences[2]), resource: resource.clone() };
    assert_eq!(*error.kind(), never);
    // Nobody remembers: the new term's fence is one that the gate has passed already, so it is stale and says so.
    let forgotten = win(&store, "job").await;
    let answer = store.admit(&resource, &lease("job"), forgotten.claim.fence).await;
    let Admit::Stale(stale) = answer else { panic!("{answer:?}") };
    assert_eq!(stale.highest, fences[2]);
    // Its holder asks again above what it was told, and the system has healed.
    crate::common::let_go(&store, &forgotten.claim).await;
    let healed = won(store.acquire(&knowing(stale.highest)).await);
    assert_eq!(store.admit(&resource, &lease("job"), healed.claim.fence).await, Admit::Accepted);
    assert!(matches!(store.admit(&resource, &lease("job"), fences[2]).await, Admit::Stale(_)));
}

/// A holder whose lease lives is no stranger, though the counter was lost or set back.
#[tokio::test]
async fn a_gate_knows_the_fence_of_a_claim_that_lives() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let resource = ResourceName::new("disk").unwrap();
    let mut claim = win(&store, "job").await.claim;
    for damage in [
        &["DEL", "leasehold:{job}:fence"][..],
        &["HSET", "leasehold:{job}:fence", "counter", "1"],
        &["HDEL", "leasehold:{job}:fence", "counter"],
    ] {
        crate::common::let_go(&store, &claim).await;
        claim = win(&store, "job").await.claim;
        server.cli(damage);
        assert_eq!(store.admit(&resource, &lease("job"), claim.fence).await, Admit::Accepted, "{damage:?}");
        assert_eq!(server.cli(&["GET", "leasehold:{job}:gate:disk"]).text(), claim.fence.to_string());
    }
}
