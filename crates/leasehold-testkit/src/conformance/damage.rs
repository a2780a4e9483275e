//! Rule 8: what cannot be read is an error, and is left as it is.

use super::subject::{Subject, lease, replica};
use leasehold_core::{Acquire, Force, LeaseRecord, Release, Renew, Renewal, StoreError, StoreErrorKind};

pub(super) async fn rule_08_a_damaged_record_is_an_error_and_stays_as_it_is(s: Subject) {
    let s = s.unhurried();
    let Some(damage) = s.damage() else {
        println!("nothing was damaged: the subject does not say how (Subject::damaged_by)");
        return;
    };
    let healthy = s.win("a healthy one", "a").await.claim;
    let claim = s.win("feed", "a").await.claim;
    damage(lease("feed")).await;

    // Twice, since the first request must not have repaired it by overwriting.
    for store in [&s.store, &s.other] {
        match store.acquire(&s.bid("feed", "b")).await {
            Acquire::Refused(error) => assert_corrupt(&error),
            other => panic!("a damaged record is neither free nor held: {other:?}"),
        }
        match store.renew(&[Renewal { claim: claim.clone(), ttl: s.ttl }]).await.remove(0) {
            Renew::Refused(error) => assert_corrupt(&error),
            other => panic!("a damaged record renews nothing: {other:?}"),
        }
        match store.release(&claim, &leasehold_core::Parting::default()).await {
            Release::Refused(error) => assert_corrupt(&error),
            other => panic!("a damaged record releases nothing: {other:?}"),
        }
        match store.force_release(&lease("feed"), &replica("ops"), "repair").await {
            Force::Refused(error) => assert_corrupt(&error),
            other => panic!("a damaged record is not forced: {other:?}"),
        }
        assert_corrupt(&store.inspect(&lease("feed")).await.expect_err("inspect"));
        let listed = store.list("").await.expect("a damaged record does not hide the others");
        let sound: Vec<&LeaseRecord> = listed.iter().flatten().collect();
        assert_eq!(sound.iter().map(|r| r.claim()).collect::<Vec<_>>(), [Some(&healthy)]);
        let errors: Vec<_> = listed.iter().filter_map(|record| record.as_ref().err()).collect();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_corrupt(errors[0]);
    }
    // Other leases are unharmed.
    let renewed = s.store.renew(&[Renewal { claim: healthy.clone(), ttl: s.ttl }]).await;
    assert!(matches!(renewed[..], [Renew::Renewed { .. }]), "{renewed:?}");
}

#[track_caller]
fn assert_corrupt(error: &StoreError) {
    match error.kind() {
        StoreErrorKind::Corrupt { key, problem } => {
            assert!(!key.is_empty() && !problem.is_empty(), "the key and the problem are named: {error}");
        }
        other => panic!("it was to be called corrupt: {other:?}"),
    }
}
