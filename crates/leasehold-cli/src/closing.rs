//! The end of a node under which nothing runs any more.
//!
//! It gives back what a bid whose answer was lost may have got, and repeats a release that was not confirmed: worth some
//! seconds of everybody's time, for others wait up to a ttl without. Not worth it at a store that says nothing at all.

use leasehold::{LeaseName, Node, Retry, SharedStore};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long the library may take to undo and release when nothing of ours runs any more.
pub(crate) const WITHIN: Duration = Duration::from_secs(3);
/// A store that has said nothing for so long is not waited for. Longer than a search for what a bid may have got.
const SILENCE: Duration = Duration::from_millis(500);
/// Between two questions. An end in order takes less, and asks none.
const PAUSE: Duration = Duration::from_millis(100);

/// Lets the node end in order, for as long as its store answers.
pub(crate) async fn close(node: &Node, name: &LeaseName) {
    tokio::select! {
        biased;
        _ = node.shutdown(WITHIN) => {}
        () = silence(node.store(), name) => {}
    }
}

/// Ends when the store has answered nothing for a while.
async fn silence(store: &SharedStore, name: &LeaseName) {
    let mut heard = Instant::now();
    loop {
        sleep(PAUSE).await;
        let enough = heard + SILENCE;
        match timeout_at(enough, store.inspect(name)).await {
            Ok(Ok(_)) => heard = Instant::now(),
            // It is there, and says that it will not.
            Ok(Err(error)) if error.retry() != Retry::Soon => heard = Instant::now(),
            Ok(Err(_)) if Instant::now() < enough => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::{MemoryStore, StoreErrorKind, Verb};
    use leasehold_testkit::faults::{Fault, FaultyStore};
    use std::sync::Arc;

    async fn ends_after(fault: Option<Fault>) -> Option<Duration> {
        let (store, faults) = FaultyStore::new(Arc::new(MemoryStore::default()));
        if let Some(fault) = fault {
            faults.always(Verb::Inspect, fault);
        }
        let (store, name): (SharedStore, _) = (store, LeaseName::new("job").unwrap());
        let begun = Instant::now();
        let ended = tokio::time::timeout(Duration::from_secs(60), silence(&store, &name)).await;
        ended.ok().map(|()| begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_answers_is_waited_for_and_a_silent_one_is_not() {
        assert_eq!(ends_after(None).await, None);
        assert_eq!(ends_after(Some(Fault::Error(StoreErrorKind::Denied))).await, None);
        for silent in [Fault::Hang, Fault::Error(StoreErrorKind::Unreachable)] {
            let after = ends_after(Some(silent)).await.unwrap();
            assert!(after >= SILENCE && after < SILENCE + PAUSE * 2, "{after:?}");
        }
    }
}
