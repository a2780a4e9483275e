//! The gate of a resource: invariant I1, kept by the store.

use super::subject::{Subject, fence, lease, resource};
use crate::stepper::Stepper;
use leasehold_core::{Admit, Bid, Fence, GateGuard, SharedStore, Stale, StoreErrorKind};
use std::time::Duration;

/// Invariant I1.
pub(super) async fn a_gate_never_accepts_less_than_it_accepted_before(s: Subject) {
    let [old, new] = two_terms(&s, "feed").await;
    let ask = async |store: &SharedStore, fence| store.admit(&resource("file"), &lease("feed"), fence).await;
    assert_eq!(ask(&s.store, old).await, Admit::Accepted);
    assert_eq!(ask(&s.other, old).await, Admit::Accepted, "an equal one is the same term");
    assert_eq!(ask(&s.other, new).await, Admit::Accepted);
    for store in [&s.store, &s.other] {
        assert_eq!(ask(store, old).await, Admit::Stale(Stale { presented: old, highest: new }));
    }
    assert_eq!(ask(&s.store, new).await, Admit::Accepted, "a refusal moves nothing");
}

pub(super) async fn a_gate_belongs_to_a_pair_of_resource_and_lease(s: Subject) {
    let [old, new] = two_terms(&s, "feed").await;
    let [other, _] = two_terms(&s, "feed/").await;
    let ask = async |file: &str, of: &str, fence| s.store.admit(&resource(file), &lease(of), fence).await;
    assert_eq!(ask("file", "feed", new).await, Admit::Accepted);
    // None of these has seen the higher fence, whatever its name suggests.
    for (file, of, fence) in
        [("file ", "feed", old), ("fil", "feed", old), ("'%_*", "feed", old), ("file", "feed/", other)]
    {
        assert_eq!(ask(file, of, fence).await, Admit::Accepted, "{file:?} of {of:?}");
    }
    assert_ne!(ask("file", "feed", old).await, Admit::Accepted);
}

/// One absurd number must not shut everyone out for good.
pub(super) async fn a_fence_that_was_never_issued_leaves_no_mark(s: Subject) {
    let (file, feed) = (resource("file"), lease("feed"));
    let refused = s.store.admit(&file, &feed, Fence::FIRST).await;
    assert!(
        matches!(&refused, Admit::Refused(e) if matches!(e.kind(), StoreErrorKind::NeverIssued { .. })),
        "the lease was never held: {refused:?}"
    );
    let [_, new] = two_terms(&s, "feed").await;
    for absurd in [fence(new.get() + 1), Fence::MAX] {
        let refused = s.store.admit(&file, &feed, absurd).await;
        assert!(matches!(refused, Admit::Refused(_)), "{refused:?}");
        match s.store.hold_gate(&file, &feed, absurd).await {
            Err(Admit::Refused(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(s.store.admit(&file, &feed, new).await, Admit::Accepted);
}

pub(super) async fn a_held_gate_keeps_the_others_out_until_its_guard_is_dropped(s: Subject) {
    let [old, new] = two_terms(&s, "feed").await;
    let (file, feed) = (resource("file"), lease("feed"));
    let guard = s.store.hold_gate(&file, &feed, old).await.expect("a free gate");
    // A waiter on the other handle, as another process would be.
    let mut waiting = std::pin::pin!(s.other.hold_gate(&file, &feed, new));
    shut(&mut waiting).await;
    // The gates of other pairs are open.
    for (file, feed) in [(&resource("other"), &feed), (&file, &lease("other duty"))] {
        let [_, fence] = if *feed == lease("feed") { [old, new] } else { two_terms(&s, "other duty").await };
        let passing = s.other.hold_gate(file, feed, fence);
        drop(tokio::time::timeout(s.patience, passing).await.expect("an open gate").expect("its gate"));
    }
    // The present holder may write meanwhile.
    assert_eq!(s.store.admit(&file, &feed, old).await, Admit::Accepted);
    drop(guard);
    let next = tokio::time::timeout(s.patience, waiting).await.expect("the gate opened");
    drop(next.expect("a higher fence"));
}

pub(super) async fn whoever_waited_too_long_at_a_gate_is_stale(s: Subject) {
    let [old, new] = two_terms(&s, "feed").await;
    let (file, feed) = (resource("file"), lease("feed"));
    let guard = s.store.hold_gate(&file, &feed, old).await.expect("a free gate");
    let mut waiting = std::pin::pin!(s.other.hold_gate(&file, &feed, old));
    shut(&mut waiting).await;
    // The higher fence is accepted while the old one waits.
    assert_eq!(s.store.admit(&file, &feed, new).await, Admit::Accepted);
    drop(guard);
    let late = tokio::time::timeout(s.patience, waiting).await.expect("an answer");
    match late {
        Err(Admit::Stale(stale)) => assert_eq!(stale, Stale { presented: old, highest: new }),
        other => panic!("the gate let an old fence in: {other:?}"),
    }
}

pub(super) async fn giving_up_at_a_gate_lets_the_next_one_in(s: Subject) {
    let [old, new] = two_terms(&s, "feed").await;
    let (file, feed) = (resource("file"), lease("feed"));
    let guard = s.store.hold_gate(&file, &feed, old).await.expect("a free gate");
    assert!(Stepper::allowing(1).run(s.other.hold_gate(&file, &feed, old)).await.is_none(), "it is held");
    // Dropped again where it really waits.
    shut(&mut std::pin::pin!(s.other.hold_gate(&file, &feed, old))).await;
    drop(guard);
    let next = tokio::time::timeout(s.patience, s.other.hold_gate(&file, &feed, new)).await;
    drop(next.expect("nobody is left in the queue").expect("the highest fence"));
}

/// Waits long enough at a held gate that whoever asks would have been let in if it were open.
async fn shut(waiting: impl Future<Output = Result<GateGuard, Admit>>) {
    if let Ok(answer) = tokio::time::timeout(Duration::from_millis(150), waiting).await {
        panic!("the gate was held: {answer:?}");
    }
}

/// Two fences of a lease, both issued, the second higher.
async fn two_terms(s: &Subject, name: &str) -> [Fence; 2] {
    let first = s.win(name, "a").await.claim;
    s.let_go(&first).await;
    let floor = Some(fence(first.fence.get() + 3));
    let second = super::won(s.store.acquire(&Bid { floor, ..s.bid(name, "b") }).await).claim;
    [first.fence, second.fence]
}
