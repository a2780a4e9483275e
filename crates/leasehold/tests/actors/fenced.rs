//! Resources behind a fence, and how a system heals whose store forgot.

use super::stage::{Log, SECOND, Stage, leads};
use leasehold::{Fence, Fenced, FencedError, Happening, HoldError, LostCause, Stale, Term};
use std::sync::{Arc, Mutex};
use tokio::time::sleep;

fn fence(n: u64) -> Fence {
    Fence::new(n).unwrap()
}

async fn ledger(stage: &Stage) -> (Fenced<Vec<u64>>, Log, leasehold::Node) {
    let (node, log) = stage.told("a").await;
    (node.fenced("ledger", "l", Vec::new()).await.unwrap(), log, node)
}

/// I1: never lower than what was accepted, in any order of arrival.
#[tokio::test(start_paused = true)]
async fn a_lower_fence_is_refused_and_told_and_changes_nothing() {
    let stage = Stage::new();
    let (ledger, log, _node) = ledger(&stage).await;
    let mut accepted = Vec::new();
    for n in [3, 3, 1, 4, 2, 4, 9, 8, 9] {
        let presented = fence(n);
        match ledger.write(presented, move |lines| lines.push(n)).await {
            Ok(()) => accepted.push(n),
            Err(FencedError::Stale(Stale { presented: shown, highest })) => {
                assert_eq!((shown, Some(highest.get())), (presented, accepted.last().copied()));
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(accepted, [3, 3, 4, 4, 9, 9]);
    assert_eq!(ledger.write(fence(9), |lines| lines.clone()).await.unwrap(), accepted);
    assert_eq!(log.count("stale-refused"), 3);
    let told = log.all().into_iter().find_map(|(_, event)| match event.what {
        Happening::StaleRefused { resource, stale } => Some((resource.to_string(), stale.presented.get())),
        _ => None,
    });
    assert_eq!(told, Some(("ledger".to_owned(), 1)));
}

#[tokio::test(start_paused = true)]
async fn an_absurd_fence_does_not_shut_everyone_out() {
    let stage = Stage::new();
    let (ledger, _, _node) = ledger(&stage).await;
    ledger.write(fence(7), |_| ()).await.unwrap();
    let stray = ledger.write(Fence::MAX, |_| unreachable!()).await;
    assert!(matches!(stray, Err(FencedError::Stray(stray)) if stray.highest == Some(fence(7))), "{stray:?}");
    ledger.write(fence(8), |_| ()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_panics_takes_the_resource_and_nothing_else() {
    let stage = Stage::new();
    let (ledger, log, node) = ledger(&stage).await;
    let election = node.election("l").lead(|_| async { std::future::pending().await }).await.unwrap();
    let term = leads(&election).await;
    let broken = ledger.write(term, |_| panic!("planned: the write panics")).await;
    assert_eq!(broken, Err::<(), _>(FencedError::Ended));
    assert_eq!(ledger.write(term, |_| ()).await, Err(FencedError::Ended));
    sleep(60 * SECOND).await;
    assert_eq!((election.leading(), log.count("lost")), (Some(term), 0));
}

/// I2, I1: a store that lost its counter issues a fence that its resource has seen: the holder is told, says so, and
/// the next term's fence is above the resource's mark.
#[tokio::test(start_paused = true)]
async fn a_system_whose_store_lost_its_counter_heals() {
    let stage = Stage::new();
    let (ledger, log, node) = ledger(&stage).await;
    // From before the loss.
    ledger.write(fence(41), |lines| lines.push(41)).await.unwrap();
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let election = node.election("l").lead({
        let (ledger, seen) = (ledger.clone(), seen.clone());
        move |term: Term| {
            let (ledger, seen) = (ledger.clone(), seen.clone());
            async move {
                let n = term.fence().get();
                seen.lock().unwrap().push(n);
                if let Err(FencedError::Stale(stale)) = ledger.write(&term, move |lines| lines.push(n)).await
                {
                    term.outranked(stale);
                    assert_eq!(term.check().unwrap_err().cause, LostCause::Stale(stale), "at once");
                }
                std::future::pending().await
            }
        }
    });
    let _election = election.await.unwrap();
    sleep(60 * SECOND).await;
    assert_eq!(*seen.lock().unwrap(), [1, 42], "the first term, and the one that heals");
    assert_eq!(ledger.write(fence(42), |lines| lines.clone()).await.unwrap(), [41, 42]);
    assert_eq!((log.count("stale-refused"), log.count("lost")), (1, 1));
}

/// The same for a lease that is held once.
#[tokio::test(start_paused = true)]
async fn a_lease_held_once_heals_too() {
    let stage = Stage::new();
    let (_, _, node) = ledger(&stage).await;
    let outranked = node.lease("l").hold(|term| async move {
        term.outranked(Stale { presented: term.fence(), highest: fence(41) });
        std::future::pending::<()>().await;
    });
    let lost = outranked.await.unwrap_err();
    assert!(matches!(&lost, HoldError::Lost(lost) if matches!(lost.cause, LostCause::Stale(_))), "{lost}");
    let healed = node.lease("l").hold(|term| async move { term.fence() }).await.unwrap();
    assert_eq!(healed.output, fence(42));
}
