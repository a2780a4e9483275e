//! Rules 1, 2 and 4: one atomic step, a counter that outlives everything, the same answer for the same attempt.

use super::subject::{Subject, fence, held, lease, replica, won};
use leasehold_core::{
    Acquire, Bid, Claim, Fence, Force, LeaseState, Note, Parting, Predecessor, Renew, Renewal,
    StoreErrorKind, TraceContext,
};

pub(super) async fn rule_01_a_free_lease_is_granted_with_the_first_fence(s: Subject) {
    let bid = Bid { trace: trace(1), ..s.bid("feed", "a") };
    let granted = won(s.store.acquire(&bid).await);
    assert_eq!(granted.claim, bid.granted(Fence::FIRST));
    assert_eq!(granted.predecessor, Predecessor::None);
    assert_eq!(granted.inherited, None);
    assert!(!granted.remaining.is_zero() && granted.remaining <= s.ttl, "{:?}", granted.remaining);
    let record = s.record("feed").await;
    assert_eq!((record.claim(), record.counter), (Some(&granted.claim), Some(Fence::FIRST)));
    let LeaseState::Held { held_for, crash_witness, .. } = record.state else { panic!("{record:?}") };
    assert!(held_for <= s.ttl && !crash_witness, "{held_for:?}");

    let refused = held(s.other.acquire(&s.bid("feed", "b")).await);
    assert_eq!((refused.by, refused.fence, refused.reserved), (replica("a"), Fence::FIRST, false));
    assert!(!refused.remaining.is_zero() && refused.remaining <= s.ttl, "{:?}", refused.remaining);
}

/// Invariants I2 and I3, under real concurrency through two handles.
pub(super) async fn rule_01_of_many_bids_at_once_exactly_one_is_granted(s: Subject) {
    let s = s.unhurried();
    let mut last: Option<Claim> = None;
    for round in 0..8 {
        let bids = (0..16).map(|n| {
            let store = if n % 2 == 0 { s.store.clone() } else { s.other.clone() };
            let bid = s.bid("feed", &format!("replica {n}"));
            tokio::spawn(async move { store.acquire(&bid).await })
        });
        let mut winner = None;
        let mut losers = Vec::new();
        for answer in futures_util::future::join_all(bids).await {
            match answer.expect("acquire does not panic") {
                Acquire::Granted(granted) => assert!(winner.replace(granted.claim).is_none(), "two winners"),
                Acquire::Held(held) => losers.push(held),
                failed => panic!("neither granted nor held: {failed:?}"),
            }
        }
        let winner = winner.unwrap_or_else(|| panic!("round {round} had no winner"));
        for held in losers {
            assert_eq!((held.by, held.fence), (winner.replica.clone(), winner.fence));
        }
        assert!(last.is_none_or(|last| winner.fence > last.fence), "I2");
        s.let_go(&winner).await;
        last = Some(winner);
    }
}

/// Invariant I2 over a loss of data: whoever remembers repairs the counter.
pub(super) async fn rule_01_the_floor_repairs_a_lost_counter(s: Subject) {
    let bid = Bid { floor: Some(fence(41)), ..s.bid("feed", "a") };
    let granted = won(s.store.acquire(&bid).await);
    assert_eq!(granted.claim.fence, fence(42));
    s.let_go(&granted.claim).await;
    assert_eq!(s.win("feed", "b").await.claim.fence, fence(43), "the repair is remembered");
}

pub(super) async fn rule_01_an_old_floor_changes_nothing(s: Subject) {
    let s = s.unhurried();
    let bid = Bid { floor: Some(fence(7)), ..s.bid("feed", "a") };
    let first = won(s.store.acquire(&bid).await).claim;
    s.let_go(&first).await;
    let bid = Bid { floor: Some(fence(3)), ..s.bid("feed", "b") };
    assert_eq!(won(s.store.acquire(&bid).await).claim.fence, fence(9));
    // Whoever is refused moves nothing either.
    let bid = Bid { floor: Some(fence(1_000)), ..s.bid("feed", "c") };
    assert_eq!(held(s.store.acquire(&bid).await).fence, fence(9));
    assert_eq!(s.record("feed").await.counter, Some(fence(9)));
}

/// Invariant I2.
pub(super) async fn rule_02_the_counter_outlives_release_expiry_and_force(s: Subject) {
    let released = s.win("feed", "a").await.claim;
    s.let_go(&released).await;
    let expired = s.win("feed", "b").await.claim;
    s.outlive(s.ttl).await;
    let forced = s.win("feed", "c").await.claim;
    let answer = s.other.force_release(&lease("feed"), &replica("ops"), "test").await;
    assert!(matches!(answer, Force::Forced { fence, .. } if fence == forced.fence), "{answer:?}");
    assert_eq!(s.record("feed").await.counter, Some(forced.fence), "a vacant lease remembers its counter");
    let last = s.win("feed", "d").await.claim;
    let fences = [released.fence, expired.fence, forced.fence, last.fence];
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

pub(super) async fn rule_02_renewing_and_repeating_do_not_move_the_counter(s: Subject) {
    let s = s.unhurried();
    let bid = s.bid("feed", "a");
    let claim = won(s.store.acquire(&bid).await).claim;
    for _ in 0..5 {
        let renewal = Renewal { claim: claim.clone(), ttl: s.ttl };
        let answers = s.store.renew(&[renewal]).await;
        assert!(matches!(answers[..], [Renew::Renewed { .. }]), "{answers:?}");
        assert_eq!(won(s.other.acquire(&bid).await).claim, claim);
    }
    assert_eq!(s.record("feed").await.counter, Some(claim.fence));
}

/// B81: the reply of the first attempt was lost, and its repetition must recognise its own claim.
pub(super) async fn rule_04_a_repeated_attempt_gets_the_same_answer_and_more_time(s: Subject) {
    let first = s.win("feed", "a").await.claim;
    let note = Note::new(first.fence, *b"left").expect("small");
    let parting = Parting { heir: None, note: Some(note.clone()), trace: trace(2) };
    s.part(&first, &parting).await;

    let bid = Bid { trace: trace(3), ..s.bid("feed", "b") };
    let answer = won(s.store.acquire(&bid).await);
    s.pass(s.ttl * 6 / 10).await;
    let again = won(s.other.acquire(&bid).await);
    assert_eq!(again.claim, answer.claim, "the same fence, not a second one");
    assert_eq!((&again.predecessor, &again.inherited), (&answer.predecessor, &Some(note)));
    s.pass(s.ttl * 6 / 10).await;
    assert_eq!(s.record("feed").await.claim(), Some(&answer.claim), "extended as by a renewal");
}

/// A request that was on its way for longer than its term lasted would take the lease for nobody (I7).
pub(super) async fn rule_04_an_attempt_is_spent_when_its_term_has_ended(s: Subject) {
    let spent = |answer: Acquire| match answer {
        Acquire::Refused(error) => assert_eq!(*error.kind(), StoreErrorKind::SpentAttempt, "{error}"),
        other => panic!("an attempt that is over was answered {other:?}"),
    };
    let released = s.bid("released", "a");
    s.let_go(&won(s.store.acquire(&released).await).claim).await;
    let forced = s.bid("forced", "a");
    let _ = won(s.store.acquire(&forced).await);
    let by = replica("operator");
    assert!(matches!(s.store.force_release(&forced.name, &by, "stuck").await, Force::Forced { .. }));
    let expired = s.bid("expired", "a");
    let _ = won(s.store.acquire(&expired).await);
    s.outlive(s.ttl).await;
    for late in [&released, &forced, &expired] {
        let before = s.record(late.name.as_str()).await;
        spent(s.store.acquire(late).await);
        spent(s.other.acquire(late).await);
        assert!(s.record(late.name.as_str()).await.same_standing(&before), "nothing has changed");
        // Another attempt of the same replica is welcome.
        let next = won(s.store.acquire(&s.bid(late.name.as_str(), "a")).await);
        assert_eq!(next.claim.fence.get(), 2);
        s.let_go(&next.claim).await;
        // One whole term later, too.
        spent(s.store.acquire(late).await);
    }
}

/// B32: whether one's own lease can be taken again has one answer on all stores: by the same attempt only.
pub(super) async fn rule_04_another_attempt_of_the_same_replica_is_another_bidder(s: Subject) {
    let s = s.unhurried();
    let claim = s.win("feed", "a").await.claim;
    let refused = held(s.store.acquire(&s.bid("feed", "a")).await);
    assert_eq!((refused.by, refused.fence), (replica("a"), claim.fence));
    assert_eq!(s.record("feed").await.claim(), Some(&claim));
}

pub(super) fn trace(n: u8) -> TraceContext {
    let trace = TraceContext::parse(&format!("00-4bf92f3577b34da6a3ce929d0e0e47{n:02x}-00f067aa0ba902b7-01"));
    assert_ne!(trace, TraceContext::NONE);
    trace
}
