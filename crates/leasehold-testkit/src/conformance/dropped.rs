//! Dropped futures: a request is then sent or never asked, and the store stays usable.

use super::subject::{Subject, candidacy, fence, held, lease, replica, resource, won};
use crate::stepper::Stepper;
use leasehold_core::{Acquire, Envelope, Parting, Release, Renew, Renewal, Scope, TraceContext};

/// Invariant I7: whatever became of it, the same attempt id settles it.
pub(super) async fn a_dropped_acquire_was_sent_or_never_asked(s: Subject) {
    let s = s.unhurried();
    let mut last = None;
    Stepper::at_every_await(async |stepper| {
        let bid = s.bid("feed", "a");
        let done = stepper.run(s.store.acquire(&bid)).await.is_some();
        let settled = won(s.other.acquire(&bid).await).claim;
        assert!(last.is_none_or(|last| settled.fence > last), "I2");
        last = Some(settled.fence);
        let again = won(s.store.acquire(&bid).await).claim;
        assert_eq!(again, settled, "the dropped request got no fence of its own after it was settled");
        s.let_go(&settled).await;
        done
    })
    .await;
}

pub(super) async fn a_dropped_renewal_leaves_the_claim_alive(s: Subject) {
    let s = s.unhurried();
    let claim = s.win("feed", "a").await.claim;
    let renewals = [Renewal { claim: claim.clone(), ttl: s.ttl }];
    Stepper::at_every_await(async |stepper| {
        let done = stepper.run(s.store.renew(&renewals)).await.is_some();
        let answers = s.store.renew(&renewals).await;
        assert!(matches!(answers[..], [Renew::Renewed { .. }]), "{answers:?}");
        assert_eq!(held(s.other.acquire(&s.bid("feed", "b")).await).fence, claim.fence);
        done
    })
    .await;
}

pub(super) async fn a_dropped_release_was_sent_or_never_asked(s: Subject) {
    let s = s.unhurried();
    Stepper::at_every_await(async |stepper| {
        let claim = s.win("feed", "a").await.claim;
        let parting = Parting::default();
        let done = stepper.run(s.store.release(&claim, &parting)).await.is_some();
        match s.store.release(&claim, &parting).await {
            Release::Released => assert!(!done, "it was released twice"),
            Release::NotHolder(over) => assert_eq!(over.holder, None),
            failed => panic!("{failed:?}"),
        }
        assert_eq!(s.record("feed").await.claim(), None);
        done
    })
    .await;
}

pub(super) async fn every_other_request_may_be_dropped_too(s: Subject) {
    let s = s.unhurried();
    let claim = s.win("feed", "a").await.claim;
    let (feed, ops, file) = (lease("feed"), replica("ops"), resource("file"));
    let standing = candidacy("feed", "b", 0);
    let letter = Envelope {
        from: replica("a"),
        lease: lease("feed"),
        kind: "test".into(),
        body: (*b"x").into(),
        trace: TraceContext::NONE,
    };
    let store = &s.store;
    // Each is dropped at each of its awaits; after every drop both handles must still answer.
    macro_rules! dropped {
        ($request:expr) => {
            Stepper::at_every_await(async |stepper| {
                let done = stepper.run($request).await.is_some();
                assert_eq!(s.record("feed").await.claim(), Some(&claim), stringify!($request));
                done
            })
            .await
        };
    }
    dropped!(store.inspect(&feed));
    dropped!(store.list(""));
    dropped!(store.watch(Scope::All));
    dropped!(store.diagnose());
    dropped!(store.announce(&standing, s.ttl));
    dropped!(store.candidates(&feed));
    dropped!(store.withdraw(&standing));
    dropped!(store.post(&ops, &letter));
    dropped!(store.inbox(&ops));
    dropped!(store.admit(&file, &feed, claim.fence));
    dropped!(store.hold_gate(&file, &feed, claim.fence));
    dropped!(store.force_release(&replica_free_name(), &ops, "nobody holds it"));

    Stepper::at_every_await(async |stepper| {
        let done = stepper.run(store.force_release(&feed, &ops, "test")).await.is_some();
        match s.other.acquire(&s.bid("feed", "b")).await {
            // A force that was on its way meanwhile may have met this claim.
            Acquire::Granted(granted) => match s.store.release(&granted.claim, &Parting::default()).await {
                Release::Released => {}
                Release::NotHolder(over) => assert_eq!(over.holder, None),
                failed => panic!("{failed:?}"),
            },
            Acquire::Held(held) => assert_eq!(held.fence, claim.fence),
            failed => panic!("{failed:?}"),
        }
        done
    })
    .await;
    assert!(s.win("feed", "c").await.claim.fence > fence(1));
}

fn replica_free_name() -> leasehold_core::LeaseName {
    lease("never held")
}
