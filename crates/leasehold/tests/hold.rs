//! Holding a lease while a future runs, under tokio's paused clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use leasehold::{Defeat, HoldError, LostCause, MemoryStore, Node, Predecessor, Release, Stopped, TokioClock};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

async fn pair() -> (Node, Node, MemoryStore) {
    let clock = Arc::new(TokioClock::new());
    let store = MemoryStore::new(clock.clone());
    let node =
        |id: &'static str| Node::builder(Arc::new(store.clone())).replica(id).clock(clock.clone()).start();
    (node("a").await.unwrap(), node("b").await.unwrap(), store.clone())
}

#[tokio::test(start_paused = true)]
async fn the_work_runs_once_and_the_lease_is_released_after_it() {
    let (a, b, _) = pair().await;
    let first = a
        .lease("l")
        .hold(|term| async move {
            sleep(Duration::from_secs(60)).await;
            term.check().map(|p| p.fence().get())
        })
        .await
        .unwrap();
    assert_eq!(first.output, Ok(1), "a minute of work under a lease of ten seconds is renewed throughout");
    assert_eq!((first.lost, first.release), (None, Some(Release::Released)));

    let second =
        b.lease("l").try_once().hold(|term| async move { term.predecessor().clone() }).await.unwrap();
    assert!(matches!(second.output, Predecessor::Released(ended) if ended.fence == first.fence));
    assert_eq!(second.fence.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn busy_out_of_time_and_stopped_are_told_apart() {
    let (a, b, _) = pair().await;
    let holding = tokio::spawn({
        let a = a.clone();
        async move { a.lease("l").hold(|_| std::future::pending::<()>()).await }
    });
    sleep(Duration::from_secs(1)).await;
    let busy = b.lease("l").try_once().hold(|_| async {}).await.unwrap_err();
    assert!(
        matches!(&busy, HoldError::NotAcquired { defeat: Defeat::Busy(held), .. } if held.by == *a.replica()),
        "{busy}"
    );
    let late = b.lease("l").wait(Duration::from_secs(30)).hold(|_| async {}).await.unwrap_err();
    assert!(
        matches!(&late, HoldError::NotAcquired { defeat: Defeat::TimedOut { last: Some(_) }, .. }),
        "{late}"
    );
    assert_eq!(a.shutdown(Duration::from_secs(5)).await, Stopped::Clean);
    assert!(matches!(holding.await.unwrap(), Err(HoldError::Stopped { .. })));
    assert_eq!(b.lease("l").try_once().hold(|t| async move { t.fence().get() }).await.unwrap().output, 2);
}

#[tokio::test(start_paused = true)]
async fn a_forced_release_ends_the_work_at_the_next_renewal() {
    let (a, b, store) = pair().await;
    let holding = tokio::spawn(async move { a.lease("l").hold(|_| std::future::pending::<()>()).await });
    sleep(Duration::from_secs(1)).await;
    use leasehold::LeaseStore as _;
    let forced = store.force_release(&"l".try_into().unwrap(), b.replica(), "testing").await;
    assert!(matches!(forced, leasehold::Force::Forced { .. }));
    let lost = holding.await.unwrap().unwrap_err();
    assert!(
        matches!(&lost, HoldError::Lost(lost) if matches!(lost.cause, LostCause::NotHolder(_))),
        "{lost}"
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_releases_the_lease_after_the_work_has_gone() {
    let (a, b, _) = pair().await;
    let (gone, work_gone) = tokio::sync::oneshot::channel::<()>();
    let holding = a.lease("l").hold(move |_| async move {
        let _gone = gone;
        std::future::pending::<()>().await;
    });
    let _ = tokio::time::timeout(Duration::from_secs(3), holding).await;
    let next = b
        .lease("l")
        .wait(Duration::from_secs(1))
        .hold(|t| async move { t.predecessor().fate().as_str() })
        .await;
    assert_eq!(next.unwrap().output, "released");
    assert!(work_gone.await.is_err(), "the work was dropped before");
}
