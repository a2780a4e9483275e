//! The roster: an order on which all replicas agree.

use super::subject::{Subject, candidacy, lease};
use leasehold_core::Candidacy;

pub(super) async fn candidates_are_ranked_by_priority_then_by_arrival(s: Subject) {
    let s = s.unhurried();
    let wanted = [("late", 0), ("later", 0), ("preferred", 5), ("last resort", -3)];
    let [late, later, preferred, last] = wanted.map(|(by, priority)| candidacy("feed", by, priority));
    for (n, candidate) in [&late, &last, &later, &preferred].into_iter().enumerate() {
        let store = if n % 2 == 0 { &s.store } else { &s.other };
        store.announce(candidate, s.ttl).await.expect("announce");
    }
    let order = [preferred.clone(), late.clone(), later.clone(), last.clone()];
    assert_eq!(ranked(&s).await, order);
    // A refresh keeps the place.
    s.store.announce(&late, s.ttl).await.expect("announce");
    s.store.announce(&later, s.ttl).await.expect("announce");
    assert_eq!(ranked(&s).await, order);
    // A new priority counts at once.
    let promoted = Candidacy { priority: 9, ..last };
    s.other.announce(&promoted, s.ttl).await.expect("announce");
    assert_eq!(ranked(&s).await, [promoted, preferred, late, later]);
    assert_eq!(s.store.candidates(&lease("fee")).await.expect("candidates"), [], "another lease");
}

/// Invariant I11: what is not refreshed ends within its ttl.
pub(super) async fn a_candidacy_ends_by_withdrawal_or_by_silence(s: Subject) {
    let [first, second] = ["a", "b"].map(|by| candidacy("feed", by, 0));
    s.store.announce(&first, s.ttl).await.expect("announce");
    s.store.announce(&second, s.ttl).await.expect("announce");
    s.store.withdraw(&first).await.expect("withdraw");
    s.other.withdraw(&first).await.expect("one that is gone already is no error");
    assert_eq!(ranked(&s).await, std::slice::from_ref(&second));

    s.pass(s.ttl * 6 / 10).await;
    s.other.announce(&second, s.ttl).await.expect("announce");
    s.pass(s.ttl * 6 / 10).await;
    assert_eq!(ranked(&s).await, std::slice::from_ref(&second), "refreshed in time");
    s.outlive(s.ttl).await;
    assert_eq!(ranked(&s).await, []);
    // Whoever was silent too long begins behind the others.
    s.store.announce(&first, s.ttl).await.expect("announce");
    s.store.announce(&second, s.ttl).await.expect("announce");
    assert_eq!(ranked(&s).await, [first, second]);
}

pub(super) async fn two_processes_with_one_replica_id_are_two_candidates(s: Subject) {
    let s = s.unhurried();
    let [one, two] = ["same", "same"].map(|by| candidacy("feed", by, 0));
    s.store.announce(&one, s.ttl).await.expect("announce");
    s.other.announce(&two, s.ttl).await.expect("announce");
    assert_eq!(ranked(&s).await, [one.clone(), two.clone()]);
    s.store.withdraw(&one).await.expect("withdraw");
    assert_eq!(ranked(&s).await, [two]);
}

/// The order, on which both handles must agree.
async fn ranked(s: &Subject) -> Vec<Candidacy> {
    let here = s.store.candidates(&lease("feed")).await.expect("candidates");
    let there = s.other.candidates(&lease("feed")).await.expect("candidates");
    assert_eq!(here, there);
    here
}
