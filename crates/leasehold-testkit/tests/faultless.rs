//! A store behind a plan without faults is the store itself.

use leasehold_core::{ManualClock, MemoryStore};
use leasehold_testkit::{conformance::Subject, faults::FaultyStore};
use std::sync::Arc;

async fn fresh() -> Subject {
    let clock = ManualClock::default();
    let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let (through, _) = FaultyStore::new(store.clone());
    Subject::new(through, store.clone(), clock).crashed_by(move |replica| {
        let store = store.clone();
        Box::pin(async move { drop(store.crash(&replica)) })
    })
}

leasehold_testkit::conformance!(fresh);
