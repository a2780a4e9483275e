#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use super::*;
use crate::event::Event;
use leasehold_core::{
    Acquire, AttemptId, Bid, LeaseName, MemoryStore, ReplicaId, SharedStore, StoreErrorKind, TokioClock,
    TraceContext,
};
use leasehold_testkit::{Fault, Faults, FaultyStore};
use std::sync::{Arc, Mutex};
use tokio::time::sleep;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(60);

/// A store with a claim of `a` whose release was not confirmed.
struct Desk {
    store: SharedStore,
    faults: Faults,
    claim: Claim,
    closing: watch::Sender<bool>,
    released: Arc<Mutex<Vec<Event>>>,
    begun: Instant,
}

fn lease() -> LeaseName {
    "l".try_into().unwrap()
}

impl Desk {
    async fn new() -> Self {
        let (store, faults) = FaultyStore::new(Arc::new(MemoryStore::new(Arc::new(TokioClock::new()))));
        let store: SharedStore = store;
        let claim = take(&store, "a").await;
        let (closing, begun) = (watch::Sender::new(false), Instant::now());
        Self { store, faults, claim, closing, released: Arc::default(), begun }
    }

    async fn settle(&self, kind: StoreErrorKind) -> End {
        let released = self.released.clone();
        let observer = move |event: &Event| released.lock().unwrap().push(event.clone());
        let events = Events::new(self.claim.replica.clone(), vec![Box::new(observer)]);
        let overdue = Overdue {
            claim: self.claim.clone(),
            parting: Parting::default(),
            error: StoreError::new(kind, Verb::Release, "memory:"),
            until: self.begun + TTL,
        };
        overdue.settle(&*self.store, &events, self.closing.subscribe()).await
    }

    fn asked(&self) -> u64 {
        self.faults.count(Verb::Release)
    }

    /// For which terms it was told that they were released.
    fn told(&self) -> Vec<u64> {
        let told = self.released.lock().unwrap();
        told.iter().map(|event| event.fence.unwrap().get()).collect()
    }

    async fn holder(&self) -> Option<ReplicaId> {
        let record = self.store.inspect(&lease()).await.unwrap();
        record.claim().map(|claim| claim.replica.clone())
    }
}

async fn take(store: &SharedStore, replica: &str) -> Claim {
    let bid = Bid {
        name: lease(),
        replica: replica.try_into().unwrap(),
        attempt: AttemptId::random(),
        ttl: TTL,
        floor: None,
        crash_witness: false,
        trace: TraceContext::NONE,
    };
    let Acquire::Granted(granted) = store.acquire(&bid).await else { panic!("it is free") };
    granted.claim
}

/// It is told once, for the right term, and the store is left alone from then on.
#[tokio::test(start_paused = true)]
async fn it_is_repeated_until_the_store_confirms_it() {
    for fault in [Fault::LoseRequest, Fault::Hang, Fault::Panic, Fault::Error(StoreErrorKind::Full)] {
        let desk = Desk::new().await;
        desk.faults.next(Verb::Release, vec![fault.clone(); 4]);
        assert_eq!(desk.settle(StoreErrorKind::Unreachable).await, End::Over, "{fault:?}");
        assert_eq!((desk.asked(), desk.told(), desk.holder().await), (5, vec![1], None), "{fault:?}");
        assert!(desk.begun.elapsed() < TTL / 2, "{fault:?}: {:?}", desk.begun.elapsed());
    }
}

/// The repetition whose answer was lost had been the release.
#[tokio::test(start_paused = true)]
async fn one_that_was_carried_out_unheard_is_told_as_a_release() {
    let desk = Desk::new().await;
    desk.faults.next(Verb::Release, [Fault::LoseReply]);
    assert_eq!(desk.settle(StoreErrorKind::Unreachable).await, End::Over);
    assert_eq!((desk.asked(), desk.told()), (2, vec![1]));
}

/// Rule 3: whoever holds the lease by the time the store listens notices nothing, and nobody is told of a release that was none.
#[tokio::test(start_paused = true)]
async fn a_late_one_harms_no_next_holder() {
    for straggles in [false, true] {
        let desk = Desk::new().await;
        if straggles {
            // Each of them reaches the store long after the next term has begun.
            desk.faults.always(Verb::Release, Fault::Straggle(20 * SECOND));
        } else {
            desk.faults.next(Verb::Release, vec![Fault::LoseRequest; 5]);
        }
        let next = async {
            sleep(SECOND / 2).await;
            let by = "operator".try_into().unwrap();
            let forced = desk.store.force_release(&lease(), &by, "testing").await;
            assert!(matches!(forced, leasehold_core::Force::Forced { .. }), "{forced:?}");
            let next = take(&desk.store, "b").await;
            sleep(SECOND).await;
            desk.faults.heal();
            next
        };
        let (end, next) = tokio::join!(desk.settle(StoreErrorKind::Unreachable), next);
        assert_eq!(end, End::Over);
        sleep(40 * SECOND).await;
        assert_eq!(desk.holder().await, Some(next.replica), "straggles {straggles}");
        assert_eq!(desk.told(), [0; 0], "straggles {straggles}");
    }
}

/// One question at a time, further and further apart, and none after the claim's own end.
#[tokio::test(start_paused = true)]
async fn it_ends_with_the_ttl_and_costs_few_questions() {
    for (fault, most) in [(Fault::Hang, 20), (Fault::LoseRequest, 65)] {
        let desk = Desk::new().await;
        desk.faults.always(Verb::Release, fault.clone());
        assert_eq!(desk.settle(StoreErrorKind::Unreachable).await, End::Expired);
        let took = desk.begun.elapsed();
        assert!(took >= TTL && took <= TTL + 2 * MS, "{fault:?}: {took:?}");
        assert!((15..=most).contains(&desk.asked()), "{fault:?}: {} questions", desk.asked());
        assert_eq!(desk.told(), [0; 0]);
    }
}

/// A clerk that is to close asks at once, and goes on only where that may help before long.
#[tokio::test(start_paused = true)]
async fn a_clerk_that_is_to_close_waits_for_what_passes_and_not_for_repairs() {
    let kinds = [
        (StoreErrorKind::Unreachable, End::Expired, 10),
        (StoreErrorKind::ReadOnly, End::GivenUp, 1),
        (StoreErrorKind::Closed, End::GivenUp, 0),
    ];
    for (kind, expected, least) in kinds {
        let desk = Desk::new().await;
        desk.faults.always(Verb::Release, Fault::Error(kind.clone()));
        let close = async {
            sleep(10 * SECOND).await;
            let asked = desk.asked();
            desk.closing.send_replace(true);
            sleep(MS).await;
            assert_eq!(desk.asked() - asked, u64::from(kind != StoreErrorKind::Closed), "{kind:?}");
            asked
        };
        let (end, asked) = tokio::join!(desk.settle(kind.clone()), close);
        assert_eq!(end, expected, "{kind:?}");
        assert!(desk.asked() - asked >= least, "{kind:?}: {} questions", desk.asked() - asked);
        let ended_at_once = desk.begun.elapsed() <= 10 * SECOND + 2 * MS;
        assert_eq!(ended_at_once, expected == End::GivenUp, "{kind:?}: {:?}", desk.begun.elapsed());
    }
}

/// What can never be released with this program is not asked for again, and expires.
#[tokio::test(start_paused = true)]
async fn a_hopeless_one_is_left_to_expire() {
    let desk = Desk::new().await;
    assert_eq!(desk.settle(StoreErrorKind::Closed).await, End::Expired);
    assert_eq!((desk.asked(), desk.begun.elapsed() >= TTL), (0, true));
}
