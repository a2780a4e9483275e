//! A store that fails whoever asks: an error is not a lease (case B14).

use super::stage::{SECOND, Stage, leads, until};
use leasehold::{HoldError, Position, StoreErrorKind};
use leasehold_core::Verb;
use leasehold_testkit::Fault;
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::time::sleep;

/// Every way in which a bid fails: refused, denied, damaged, lost before and after it was carried out, silent, and a
/// client that breaks down.
fn ways() -> Vec<Fault> {
    let corrupt = StoreErrorKind::Corrupt { key: "l".into(), problem: "not a record".into() };
    vec![
        Fault::Error(StoreErrorKind::Unreachable),
        Fault::Error(StoreErrorKind::Denied),
        Fault::Error(StoreErrorKind::Full),
        Fault::Error(corrupt),
        Fault::Error(StoreErrorKind::Other),
        Fault::LoseRequest,
        Fault::LoseReply,
        Fault::Hang,
        Fault::HangAfter,
        Fault::Panic,
    ]
}

/// B14: the work of a lease is not started, and its caller is told what failed.
#[tokio::test(start_paused = true)]
async fn no_failure_of_an_acquire_starts_the_work() {
    for way in ways() {
        for waits in [false, true] {
            let stage = Stage::new();
            let a = stage.node("a").await;
            stage.faults.always(Verb::Acquire, way.clone());
            let works = Arc::new(AtomicU64::new(0));
            let work = {
                let works = works.clone();
                move |_| async move { works.fetch_add(1, Ordering::SeqCst) }
            };
            let lease = a.lease("l");
            let lease = if waits { lease.wait(20 * SECOND) } else { lease.try_once() };
            let told = lease.hold(work).await.unwrap_err();
            assert!(matches!(told, HoldError::NotAcquired { .. }), "{way:?}, waits {waits}: {told:?}");
            sleep(60 * SECOND).await;
            assert_eq!(works.load(Ordering::SeqCst), 0, "{way:?}, waits {waits}");
            assert_eq!(stage.holder("l").await, None, "{way:?}, waits {waits}: held by nobody alive");
            assert!(stage.faults.met() > 0);
        }
    }
}

/// B14: an election goes on asking, tells nobody that it leads, and leads as soon as the store answers.
#[tokio::test(start_paused = true)]
async fn no_failure_of_an_acquire_makes_a_leader() {
    for way in ways() {
        let stage = Stage::new();
        let (a, log) = stage.told("a").await;
        stage.faults.always(Verb::Acquire, way.clone());
        let works = Arc::new(AtomicU64::new(0));
        let election = a.election("l").lead({
            let works = works.clone();
            move |_| {
                works.fetch_add(1, Ordering::SeqCst);
                async { pending().await }
            }
        });
        let election = election.await.unwrap();
        for _ in 0..60 {
            sleep(SECOND).await;
            assert_eq!(election.leading(), None, "{way:?}");
            assert!(!matches!(*election.position().borrow(), Position::Leading(_)), "{way:?}");
        }
        assert_eq!((works.load(Ordering::SeqCst), log.count("acquired")), (0, 0), "{way:?}");
        let asked = stage.faults.count(Verb::Acquire);
        assert!((2..200).contains(&asked), "{way:?}: it went on asking, {asked} times in a minute");
        stage.faults.heal();
        leads(&election).await;
        until("the work begins", || works.load(Ordering::SeqCst) == 1).await;
        assert_eq!(log.count("acquired"), 1, "{way:?}");
    }
}
