//! The memory store keeps the contract.

use leasehold_core::{ManualClock, MemoryStore};
use leasehold_testkit::conformance::Subject;
use std::sync::Arc;

async fn fresh() -> Subject {
    let clock = ManualClock::default();
    let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let crashing = store.clone();
    Subject::new(store.clone(), Arc::new((*store).clone()), clock).crashed_by(move |replica| {
        let store = crashing.clone();
        Box::pin(async move { drop(store.crash(&replica)) })
    })
}

leasehold_testkit::conformance!(fresh);
