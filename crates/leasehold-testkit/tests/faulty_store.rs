//! A store behind faults does to its caller what was planned, and to the store what was promised.

use leasehold_core::{
    Acquire, AttemptId, Bid, LeaseName, LeaseStore, Mail, MemoryStore, Parting, Release, Renew, Renewal,
    ReplicaId, Scope, StoreErrorKind, TraceContext, Verb,
};
use leasehold_testkit::faults::{Fault, Faults, FaultyStore, Mix};
use std::{sync::Arc, time::Duration};

const TTL: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(3600);

fn bid() -> Bid {
    Bid {
        name: LeaseName::new("feed").expect("valid"),
        replica: ReplicaId::new("a").expect("valid"),
        attempt: AttemptId::random(),
        ttl: TTL,
        floor: None,
        crash_witness: false,
        trace: TraceContext::NONE,
    }
}

fn faulty() -> (MemoryStore, Arc<FaultyStore>, Faults) {
    let store = MemoryStore::default();
    let (faulty, faults) = FaultyStore::new(Arc::new(store.clone()));
    (store, faulty, faults)
}

async fn holder(store: &MemoryStore) -> Option<AttemptId> {
    store.inspect(&bid().name).await.expect("inspect").claim().map(|claim| claim.attempt)
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_changes_nothing_and_a_lost_reply_hides_a_change() {
    let (store, faulty, faults) = faulty();
    faults.next(Verb::Acquire, [Fault::LoseRequest, Fault::LoseReply]);
    let wanted = bid();
    assert!(matches!(faulty.acquire(&wanted).await, Acquire::Unknown(_)));
    assert_eq!(holder(&store).await, None);
    assert!(matches!(faulty.acquire(&wanted).await, Acquire::Unknown(_)));
    assert_eq!(holder(&store).await, Some(wanted.attempt));
    // Settled by the attempt id, once the network works again.
    let Acquire::Granted(granted) = faulty.acquire(&wanted).await else { panic!("its own claim") };

    faults.next(Verb::Renew, [Fault::LoseReply]);
    let renewal = Renewal { claim: granted.claim.clone(), ttl: TTL };
    assert!(matches!(
        faulty.renew(&[renewal.clone(), renewal]).await[..],
        [Renew::Unknown(_), Renew::Unknown(_)]
    ));
    faults.next(Verb::Release, [Fault::LoseReply]);
    assert!(matches!(faulty.release(&granted.claim, &Parting::default()).await, Release::Unknown(_)));
    assert_eq!(holder(&store).await, None);
    assert_eq!(
        (faults.count(Verb::Acquire), faults.count(Verb::Renew), faults.total(), faults.met()),
        (3, 1, 5, 4)
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_be_late_after_the_store_has_acted_or_the_request_late_before() {
    let (store, faulty, faults) = faulty();
    for (fault, acted) in [(Fault::Late(TTL / 2), true), (Fault::Slow(TTL / 2), false)] {
        faults.next(Verb::Acquire, [fault]);
        let wanted = bid();
        let mut asking = std::pin::pin!(faulty.acquire(&wanted));
        assert!(tokio::time::timeout(TTL / 4, &mut asking).await.is_err());
        assert_eq!(holder(&store).await.is_some(), acted);
        let Acquire::Granted(granted) = asking.await else { panic!("granted in the end") };
        let _ = store.release(&granted.claim, &Parting::default()).await;
    }
}

/// The caller has long gone on when the store carries it out.
#[tokio::test(start_paused = true)]
async fn a_straggler_is_carried_out_when_nobody_waits_for_it_any_more() {
    let (store, faulty, faults) = faulty();
    for verb in [Verb::Acquire, Verb::Renew, Verb::Release] {
        faults.always(verb, Fault::Straggle(TTL / 2));
    }
    let wanted = bid();
    assert!(matches!(faulty.acquire(&wanted).await, Acquire::Unknown(_)));
    assert_eq!(holder(&store).await, None);
    tokio::time::sleep(TTL).await;
    assert_eq!(holder(&store).await, Some(wanted.attempt), "since half a ttl");

    let claim = store.inspect(&wanted.name).await.unwrap().claim().unwrap().clone();
    let renewal = Renewal { claim: claim.clone(), ttl: TTL * 4 };
    tokio::time::sleep(TTL / 4).await;
    assert!(matches!(faulty.renew(std::slice::from_ref(&renewal)).await[..], [Renew::Unknown(_)]));
    // Too late: the claim has expired meanwhile, and the next is another's.
    tokio::time::sleep(TTL * 3 / 8).await;
    assert_eq!(holder(&store).await, None);
    let Acquire::Granted(next) = store.acquire(&bid()).await else { panic!("vacant") };
    assert!(matches!(faulty.release(&claim, &Parting::default()).await, Release::Unknown(_)));
    assert!(matches!(faulty.release(&next.claim, &Parting::default()).await, Release::Unknown(_)));
    assert_eq!(holder(&store).await, Some(next.claim.attempt));
    tokio::time::sleep(TTL * 5 / 8).await;
    assert_eq!(holder(&store).await, None);
    assert_eq!(store.inspect(&bid().name).await.unwrap().predecessor.fate().as_str(), "released");
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_a_request_that_hangs_whether_or_not_it_was_carried_out() {
    let (store, faulty, faults) = faulty();
    for (fault, acted) in [(Fault::Hang, false), (Fault::HangAfter, true)] {
        faults.next(Verb::Acquire, [fault]);
        assert!(tokio::time::timeout(LONG, faulty.acquire(&bid())).await.is_err());
        // The claim of the second is long over by the clock; its counter tells that it was there.
        assert_eq!(store.inspect(&bid().name).await.unwrap().counter.is_some(), acted);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_panics_and_skewed_clocks_come_as_planned_until_the_store_is_healed() {
    let (store, faulty, faults) = faulty();
    faults.everything(&Fault::Error(StoreErrorKind::ReadOnly));
    let Acquire::Refused(error) = faulty.acquire(&bid()).await else { panic!("refused") };
    assert_eq!((error.kind(), error.verb()), (&StoreErrorKind::ReadOnly, Verb::Acquire));
    assert_eq!(error.lease(), Some(&bid().name));
    assert!(faulty.inspect(&bid().name).await.is_err() && faulty.diagnose().await.is_err());
    assert_eq!(holder(&store).await, None);

    faults.heal();
    faults.next(Verb::Acquire, [Fault::Panic]);
    let panicking = tokio::spawn({
        let faulty = faulty.clone();
        async move { faulty.acquire(&bid()).await }
    });
    assert!(panicking.await.unwrap_err().is_panic());

    faults.next(Verb::Acquire, [Fault::Skew(3.0)]);
    let Acquire::Granted(granted) = faulty.acquire(&bid()).await else { panic!("granted") };
    assert_eq!(granted.remaining, TTL * 3, "more than was asked for: a clock that jumped");
}

#[tokio::test(start_paused = true)]
async fn a_deaf_watch_shows_nothing_and_does_not_end() {
    let (_store, faulty, faults) = faulty();
    faults.always(Verb::Watch, Fault::Deaf);
    faults.always(Verb::Inbox, Fault::Deaf);
    let mut watch = faulty.watch(Scope::All).await.unwrap();
    let mut inbox = faulty.inbox(&bid().replica).await.unwrap();
    let _ = faulty.acquire(&bid()).await;
    assert!(tokio::time::timeout(LONG, watch.next()).await.is_err());
    assert!(tokio::time::timeout(LONG, inbox.next()).await.is_err());
    faults.heal();
    assert!(faulty.watch(Scope::All).await.unwrap().next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_seed_repeats_its_faults_and_another_does_not() {
    let run = async |seed| {
        let (_, faulty, faults) = faulty();
        faults.seeded(Mix { seed, chance: 0.5, faults: vec![Fault::LoseRequest, Fault::LoseReply] });
        let mut story = Vec::new();
        for _ in 0..64 {
            story.push(matches!(faulty.acquire(&bid()).await, Acquire::Unknown(_)));
        }
        (story, faults.met())
    };
    let (first, met) = run(1).await;
    assert_eq!((first.clone(), met), run(1).await);
    assert_ne!(first, run(2).await.0);
    assert!((16..48).contains(&met), "about half of 64: {met}");
}
