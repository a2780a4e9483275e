//! Rule 3: renew and release are conditional on the whole claim.

use super::subject::{Subject, fence, held, replica};
use leasehold_core::{
    AttemptId, Claim, LeaseRecord, NotHolder, Parting, Release, Renew, Renewal, SharedStore,
};

pub(super) async fn rule_03_renewing_keeps_a_claim_alive(s: Subject) {
    let claim = s.win("feed", "a").await.claim;
    for _ in 0..4 {
        s.pass(s.ttl * 6 / 10).await;
        match renew(&s, &s.store, &claim).await {
            Renew::Renewed { remaining } => {
                assert!(!remaining.is_zero() && remaining <= s.ttl, "{remaining:?}");
            }
            failed => panic!("{failed:?}"),
        }
    }
    assert_eq!(held(s.other.acquire(&s.bid("feed", "b")).await).fence, claim.fence);
    // A claim may be moved from one handle to another: it is named, not tied to a connection.
    assert!(matches!(renew(&s, &s.other, &claim).await, Renew::Renewed { .. }));
}

/// B16, B59: neither the lease, nor the replica, nor the fence alone is a claim.
pub(super) async fn rule_03_only_the_whole_claim_renews_or_releases(s: Subject) {
    let s = s.unhurried();
    let claim = s.win("feed", "a").await.claim;
    let before = s.record("feed").await;
    let impostors = [
        Claim { attempt: AttemptId::random(), ..claim.clone() },
        Claim { fence: fence(claim.fence.get() + 1), ..claim.clone() },
        Claim { replica: replica("b"), ..claim.clone() },
        Claim { attempt: AttemptId::from_bytes([0; 16]), fence: fence(99), ..claim.clone() },
    ];
    for impostor in impostors {
        assert_over(renew(&s, &s.store, &impostor).await, &claim);
        assert_left(s.store.release(&impostor, &Parting::default()).await, &claim);
        let after = s.record("feed").await;
        assert!(after.same_standing(&before) && after.remaining() <= before.remaining(), "{impostor:?}");
    }
    assert!(matches!(renew(&s, &s.store, &claim).await, Renew::Renewed { .. }));
}

/// B68: the late release of an old term must not let a third one in.
pub(super) async fn rule_03_a_late_release_leaves_the_next_holder_alone(s: Subject) {
    let (old, new, before) = succession(&s).await;
    assert_left(s.store.release(&old, &Parting::default()).await, &new);
    assert!(s.record("feed").await.same_standing(&before));
    assert_eq!(held(s.store.acquire(&s.bid("feed", "c")).await).fence, new.fence);
    s.let_go(&new).await;
}

/// B16, B30.
pub(super) async fn rule_03_a_late_renewal_leaves_the_next_holder_alone(s: Subject) {
    let (old, new, before) = succession(&s).await;
    assert_over(renew(&s, &s.store, &old).await, &new);
    let after = s.record("feed").await;
    assert!(after.same_standing(&before) && after.remaining() <= before.remaining(), "{after:?}");
}

pub(super) async fn rule_03_a_repeated_release_says_that_it_was_over(s: Subject) {
    let s = s.unhurried();
    let claim = s.win("feed", "a").await.claim;
    s.let_go(&claim).await;
    for store in [&s.store, &s.other] {
        let answer = store.release(&claim, &Parting::default()).await;
        let over = NotHolder { holder: None, highest: Some(claim.fence) };
        assert_eq!(answer, Release::NotHolder(over.clone()));
        assert_eq!(renew(&s, store, &claim).await, Renew::NotHolder(over), "a late renewal revives nothing");
    }
    assert_eq!(s.record("feed").await.claim(), None);
}

/// Invariant I3: only so may a candidate trust the store's own expiry.
pub(super) async fn rule_03_an_expired_claim_is_over_even_if_nobody_took_the_lease(s: Subject) {
    let claim = s.win("feed", "a").await.claim;
    s.outlive(s.ttl).await;
    let over = NotHolder { holder: None, highest: Some(claim.fence) };
    assert_eq!(renew(&s, &s.store, &claim).await, Renew::NotHolder(over.clone()));
    assert_eq!(s.store.release(&claim, &Parting::default()).await, Release::NotHolder(over));
    assert_eq!(s.record("feed").await.claim(), None);
}

pub(super) async fn rule_03_renewals_are_answered_one_by_one_in_their_order(s: Subject) {
    let s = s.unhurried();
    assert_eq!(s.store.renew(&[]).await, []);
    let mut claims = Vec::new();
    for n in 0..40 {
        claims.push(s.win(&format!("duty {n}"), "a").await.claim);
    }
    for over in claims.iter().step_by(3) {
        s.let_go(over).await;
    }
    let renewals: Vec<_> = claims.iter().map(|claim| Renewal { claim: claim.clone(), ttl: s.ttl }).collect();
    let answers = s.store.renew(&renewals).await;
    assert_eq!(answers.len(), renewals.len());
    for (n, answer) in answers.into_iter().enumerate() {
        let over = NotHolder { holder: None, highest: Some(claims[n].fence) };
        match answer {
            Renew::Renewed { .. } => assert_ne!(n % 3, 0, "duty {n} was released"),
            Renew::NotHolder(told) => assert_eq!((n % 3, told), (0, over), "duty {n}"),
            failed => panic!("{failed:?}"),
        }
    }
}

pub(super) async fn rule_03_a_claim_on_a_lease_never_held_is_no_claim(s: Subject) {
    let claim = s.bid("never", "a").granted(fence(5));
    let nobody = NotHolder { holder: None, highest: None };
    assert_eq!(renew(&s, &s.store, &claim).await, Renew::NotHolder(nobody.clone()));
    assert_eq!(s.store.release(&claim, &Parting::default()).await, Release::NotHolder(nobody));
    assert_eq!(s.record("never").await, LeaseRecord::unknown(claim.name));
}

/// The expired claim of one replica, the living one of the next, and the record before anything late arrives.
async fn succession(s: &Subject) -> (Claim, Claim, LeaseRecord) {
    let old = s.win("feed", "a").await.claim;
    s.outlive(s.ttl).await;
    let new = s.win("feed", "b").await.claim;
    assert!(new.fence > old.fence, "I2");
    (old, new, s.record("feed").await)
}

async fn renew(s: &Subject, store: &SharedStore, claim: &Claim) -> Renew {
    let mut answers = store.renew(&[Renewal { claim: claim.clone(), ttl: s.ttl }]).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

fn told(holder: &Claim) -> NotHolder {
    NotHolder { holder: Some((holder.replica.clone(), holder.fence)), highest: Some(holder.fence) }
}

#[track_caller]
fn assert_over(answer: Renew, holder: &Claim) {
    assert_eq!(answer, Renew::NotHolder(told(holder)));
}

#[track_caller]
fn assert_left(answer: Release, holder: &Claim) {
    assert_eq!(answer, Release::NotHolder(told(holder)));
}
