//! Rules 9 and 10: what a store says of itself, and the end of its fences.

use super::subject::{Subject, fence, won};
use leasehold_core::{Acquire, Bid, Fence, StoreError, StoreErrorKind};
use std::time::Duration;

pub(super) async fn rule_09_the_promises_make_sense(s: Subject) {
    let traits = s.store.traits();
    assert_eq!(traits, s.other.traits(), "two handles promise the same");
    let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(!traits.kind.is_empty() && traits.kind.chars().all(label), "{:?} is no label", traits.kind);
    assert!(Duration::ZERO < traits.min_ttl && traits.min_ttl <= s.ttl && s.ttl <= traits.max_ttl);
    assert!(traits.wake_up < Duration::from_secs(60), "{:?}", traits.wake_up);
    assert!(!s.store.address().is_empty());
    // What is found to be wrong with a store is for people and for scripts.
    for finding in s.store.diagnose().await.expect("diagnose") {
        assert!(!finding.code.is_empty() && finding.code.chars().all(label), "{finding:?}");
        assert!(finding.text.ends_with('.'), "a sentence: {finding:?}");
    }
}

pub(super) async fn rule_10_at_the_last_fence_a_store_refuses(s: Subject) {
    let bid = Bid { floor: Some(fence(Fence::MAX.get() - 1)), ..s.bid("feed", "a") };
    let last = won(s.store.acquire(&bid).await).claim;
    assert_eq!(last.fence, Fence::MAX);
    s.let_go(&last).await;
    for floor in [None, Some(Fence::FIRST), Some(Fence::MAX)] {
        let bid = Bid { floor, ..s.bid("feed", "b") };
        assert_exhausted(s.store.acquire(&bid).await);
    }
    assert_eq!(s.record("feed").await.counter, Some(Fence::MAX), "never wrapped");
    // A floor alone can exhaust a name that was never held; that must not use up the name.
    let absurd = Bid { floor: Some(Fence::MAX), ..s.bid("fresh", "a") };
    assert_exhausted(s.store.acquire(&absurd).await);
    assert_eq!(s.win("fresh", "a").await.claim.fence, Fence::FIRST);
}

#[track_caller]
fn assert_exhausted(answer: Acquire) {
    let kind = |error: &StoreError| error.kind().clone();
    match answer {
        Acquire::Refused(error) => assert_eq!(kind(&error), StoreErrorKind::FenceExhausted(Fence::MAX)),
        other => panic!("there is no fence left: {other:?}"),
    }
}
