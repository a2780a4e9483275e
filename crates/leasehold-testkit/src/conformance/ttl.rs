//! Times to live: what is refused, what is kept, and whose clock ends them.

use super::subject::{Subject, held, won};
use leasehold_core::{Acquire, Bid, LeaseRecord, Renew, Renewal};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// B08: candidates may ask as often as they like, and by whatever clock of their own.
pub(super) async fn rule_11_only_the_clock_of_the_store_ends_a_claim(s: Subject) {
    let claim = s.win("feed", "a").await.claim;
    for n in 0..20 {
        let store = if n % 2 == 0 { &s.other } else { &s.store };
        assert_eq!(held(store.acquire(&s.bid("feed", "b")).await).fence, claim.fence);
    }
    // Renewed for many ttls while the other handle contends.
    for _ in 0..4 {
        s.pass(s.ttl * 6 / 10).await;
        let answers = s.store.renew(&[Renewal { claim: claim.clone(), ttl: s.ttl }]).await;
        assert!(matches!(answers[..], [Renew::Renewed { .. }]), "{answers:?}");
        assert_eq!(held(s.other.acquire(&s.bid("feed", "b")).await).fence, claim.fence);
    }
    s.outlive(s.ttl).await;
    assert!(won(s.other.acquire(&s.bid("feed", "b")).await).claim.fence > claim.fence, "I2");
}

pub(super) async fn rule_11_what_is_left_shrinks_and_never_exceeds_what_was_asked(s: Subject) {
    let granted = s.win("feed", "a").await;
    assert!(granted.remaining <= s.ttl, "{:?}", granted.remaining);
    s.pass(s.ttl / 2).await;
    let half = s.ttl / 2 + MS;
    let told = [
        s.record("feed").await.remaining(),
        held(s.store.acquire(&s.bid("feed", "b")).await).remaining,
        held(s.other.acquire(&s.bid("feed", "b")).await).remaining,
    ];
    for remaining in told {
        assert!(!remaining.is_zero() && remaining <= half, "{told:?} after half of {:?}", s.ttl);
    }
    // A shorter ttl shortens: the claim lives for what was asked last.
    let shorter = (s.ttl / 4).max(s.store.traits().min_ttl);
    let answers = s.store.renew(&[Renewal { claim: granted.claim.clone(), ttl: shorter }]).await;
    match answers[..] {
        [Renew::Renewed { remaining }] => assert!(remaining <= shorter, "{remaining:?} of {shorter:?}"),
        _ => panic!("{answers:?}"),
    }
}

/// B55, B56: never zero, never endless, never wrapped, never a panic.
pub(super) async fn a_ttl_outside_the_bounds_is_refused_and_changes_nothing(s: Subject) {
    for (n, ttl) in absurd(&s).into_iter().enumerate() {
        let name = format!("absurd {n}");
        let bid = Bid { ttl, ..s.bid(&name, "a") };
        match s.store.acquire(&bid).await {
            Acquire::Refused(_) => {}
            other => panic!("a ttl of {ttl:?} was to be refused: {other:?}"),
        }
        assert_eq!(s.record(&name).await, LeaseRecord::unknown(bid.name));
    }
    let (min, max) = (s.store.traits().min_ttl, s.store.traits().max_ttl);
    for (name, ttl) in [("shortest", min), ("longest", max)] {
        let granted = won(s.store.acquire(&Bid { ttl, ..s.bid(name, "a") }).await);
        assert!(!granted.remaining.is_zero() && granted.remaining <= ttl, "{:?}", granted.remaining);
    }
    let left = s.record("longest").await.remaining();
    assert!(left <= max && left > max - Duration::from_secs(60), "{left:?}");
}

/// B55: a renewal for no time deletes the lease on some servers, and looks like a success.
pub(super) async fn a_renewal_outside_the_bounds_is_refused_and_changes_nothing(s: Subject) {
    let claim = s.win("feed", "a").await.claim;
    let before = s.record("feed").await;
    for ttl in absurd(&s) {
        let answers = s.store.renew(&[Renewal { claim: claim.clone(), ttl }]).await;
        assert!(matches!(answers[..], [Renew::Refused(_)]), "{ttl:?}: {answers:?}");
    }
    let after = s.record("feed").await;
    assert!(after.same_standing(&before) && after.remaining() <= before.remaining(), "{after:?}");
}

pub(super) async fn a_fraction_of_a_millisecond_is_never_lost(s: Subject) {
    let ttl = s.ttl + Duration::from_nanos(1);
    let granted = won(s.store.acquire(&Bid { ttl, ..s.bid("feed", "a") }).await);
    assert!(granted.remaining <= s.ttl + MS, "{:?}", granted.remaining);
    s.pass(s.ttl * 6 / 10).await;
    let answers = s.store.renew(&[Renewal { claim: granted.claim.clone(), ttl }]).await;
    assert!(matches!(answers[..], [Renew::Renewed { .. }]), "{answers:?}");
    assert!(s.record("feed").await.remaining() <= s.ttl + MS);
}

fn absurd(s: &Subject) -> Vec<Duration> {
    let (min, max) = (s.store.traits().min_ttl, s.store.traits().max_ttl);
    let years = |n: u64| Duration::from_secs(n * 365 * 24 * 3600);
    vec![
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_micros(999),
        min - Duration::from_nanos(1),
        max + MS,
        years(1),
        years(300),
        Duration::from_secs(i32::MAX as u64),
        Duration::from_millis(i64::MAX as u64),
        Duration::from_secs(u64::MAX),
        Duration::MAX,
    ]
}
