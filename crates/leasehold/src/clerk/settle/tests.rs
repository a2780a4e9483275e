#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use super::*;
use leasehold_core::{Acquire, Bid, LeaseStore, MemoryStore, TokioClock, TraceContext};
use leasehold_testkit::{Fault, FaultyStore};
use std::sync::Arc;

const MS: Duration = Duration::from_millis(1);
const TTL: Duration = Duration::from_secs(30);

fn bid() -> Bid {
    Bid {
        name: "l".try_into().unwrap(),
        replica: "a".try_into().unwrap(),
        attempt: AttemptId::random(),
        ttl: TTL,
        floor: None,
        crash_witness: false,
        trace: TraceContext::NONE,
    }
}

/// I7: a bid that arrives after somebody looked for it in vain is still found.
#[tokio::test(start_paused = true)]
async fn a_bid_that_arrives_after_a_look_in_vain_is_undone() {
    for (late, hurry) in [(1, false), (700, false), (1_900, false), (1, true), (240, true)] {
        let (store, faults) = FaultyStore::new(Arc::new(MemoryStore::new(Arc::new(TokioClock::new()))));
        let (bid, closing) = (bid(), watch::Sender::new(hurry));
        faults.next(Verb::Acquire, [Fault::Slow(late * MS)]);
        let absence = Absence::MustLast(closing.subscribe());
        let (arrived, ()) =
            tokio::join!(store.acquire(&bid), undo(&*store, &bid.name, bid.attempt, TTL, absence));
        assert!(matches!(arrived, Acquire::Granted(_)), "{arrived:?}");
        let record = store.inspect(&bid.name).await.unwrap();
        assert_eq!(record.claim(), None, "{late} ms late, hurry {hurry}");
    }
}

/// Whether it is in a hurry from the first, from some moment, or never: bounded, and with a look at the end of its time.
#[tokio::test(start_paused = true)]
async fn a_search_is_bounded_and_shorter_in_a_hurry() {
    for (hurry_after, took) in [(0, 250), (100, 250), (1_500, 1_500), (9_000, 2_000)] {
        let (store, faults) = FaultyStore::new(Arc::new(MemoryStore::new(Arc::new(TokioClock::new()))));
        let (bid, closing) = (bid(), watch::Sender::new(hurry_after == 0));
        tokio::spawn({
            let closing = closing.clone();
            async move {
                sleep(hurry_after * MS).await;
                closing.send_replace(true);
            }
        });
        let begun = Instant::now();
        undo(&*store, &bid.name, bid.attempt, TTL, Absence::MustLast(closing.subscribe())).await;
        let lasted = begun.elapsed();
        assert!(lasted >= took * MS && lasted <= took * MS + 5 * MS, "{hurry_after}: {lasted:?}");
        let looks = faults.count(Verb::Inspect);
        assert!((2..=12).contains(&looks), "{hurry_after}: {looks} looks");
    }
}

/// The store that never answers is asked for one ttl; whatever there was has then expired.
#[tokio::test(start_paused = true)]
async fn a_search_in_a_silent_store_ends_with_the_ttl() {
    let (store, faults) = FaultyStore::new(Arc::new(MemoryStore::new(Arc::new(TokioClock::new()))));
    faults.everything(&Fault::Hang);
    let (bid, closing) = (bid(), watch::Sender::new(false));
    let begun = Instant::now();
    undo(&*store, &bid.name, bid.attempt, TTL, Absence::MustLast(closing.subscribe())).await;
    assert!(begun.elapsed() <= TTL + 5 * MS && begun.elapsed() > TTL / 2, "{:?}", begun.elapsed());
}
