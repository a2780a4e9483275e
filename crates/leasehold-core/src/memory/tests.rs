//! What only this store can show; the contract itself is tested by the conformance suite.

use super::{MemoryStore, Table};
use crate::{
    Acquire, AttemptId, Bid, Fate, Fence, Granted, LeaseName, LeaseStore, Moment, Parting, Release, Renew,
    Renewal, ReplicaId, Scope, Sighting, TraceContext,
};
use std::time::Duration;

const TTL: Duration = Duration::from_secs(2);

fn bid(replica: &str) -> Bid {
    Bid {
        name: LeaseName::new("feed").unwrap(),
        replica: ReplicaId::new(replica).unwrap(),
        attempt: AttemptId::random(),
        ttl: TTL,
        floor: None,
        crash_witness: false,
        trace: TraceContext::NONE,
    }
}

fn won(answer: Acquire) -> Granted {
    match answer {
        Acquire::Granted(granted) => granted,
        other => panic!("not granted: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_default_store_follows_a_paused_clock() {
    let store = MemoryStore::default();
    let first = won(store.acquire(&bid("a")).await);
    assert!(matches!(store.acquire(&bid("b")).await, Acquire::Held(held) if held.remaining == TTL));
    tokio::time::advance(TTL).await;
    let second = won(store.clone().acquire(&bid("b")).await);
    assert!(second.claim.fence > first.claim.fence, "I2");
    assert_eq!(second.predecessor.fate(), Fate::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_witnessed_crash_ends_the_claim_at_once_and_says_so() {
    let store = MemoryStore::default();
    let (mut plain, mut witnessed) = (bid("a"), bid("a"));
    plain.name = LeaseName::new("plain").unwrap();
    witnessed.crash_witness = true;
    let _ = won(store.acquire(&plain).await);
    let first = won(store.acquire(&witnessed).await);
    let mut watch = store.watch(Scope::Names(vec![witnessed.name.clone()])).await.unwrap();
    assert!(
        matches!(watch.next().await, Some(Sighting::State(seen)) if seen.claim() == Some(&first.claim)),
        "the present state comes first"
    );

    assert_eq!(store.crash(&ReplicaId::new("b").unwrap()), []);
    assert_eq!(store.crash(&witnessed.replica), [witnessed.name.clone()], "the other claim did not ask");

    assert!(matches!(watch.next().await, Some(Sighting::State(seen)) if seen.claim().is_none()));
    assert_eq!(won(store.acquire(&bid("b")).await).predecessor.fate(), Fate::Crashed);
}

#[tokio::test]
async fn a_watch_ends_with_the_last_handle_of_its_store() {
    let store = MemoryStore::default();
    let mut watch = store.watch(Scope::All).await.unwrap();
    drop(store);
    assert_eq!(watch.next().await, None);
}

#[test]
fn a_table_is_a_value_that_a_simulation_can_copy_and_drive_by_its_own_clock() {
    let now = Moment::ORIGIN;
    let mut table = Table::default();
    let wanted = bid("a");
    let first = won(table.acquire(now, &wanted));
    let mut fork = table.clone();
    let late = now.after(TTL);
    assert!(matches!(
        table.renew(now.after(TTL / 2), &Renewal { claim: first.claim.clone(), ttl: TTL }),
        Renew::Renewed { remaining: TTL }
    ));
    assert!(matches!(table.acquire(late, &bid("b")), Acquire::Held(_)));
    // In the other world the renewal never came: over by the clock, even before anybody else takes it (rule 3).
    assert!(matches!(fork.release(late, &first.claim, &Parting::default()), Release::NotHolder(_)));
    assert_ne!(table, fork);
}

#[test]
fn an_exhausted_counter_refuses_and_is_left_as_it_was() {
    let now = Moment::ORIGIN;
    let mut table = Table::default();
    let last = Bid { floor: Fence::new(Fence::MAX.get() - 1).ok(), ..bid("a") };
    let held = won(table.acquire(now, &last)).claim;
    assert_eq!(held.fence, Fence::MAX);
    assert_eq!(table.release(now, &held, &Parting::default()), Release::Released);
    let before = table.clone();
    assert!(matches!(table.acquire(now, &bid("b")), Acquire::Refused(_)));
    assert_eq!(table, before);
    // A bid whose own floor leaves no room leaves no trace either.
    let mut empty = Table::default();
    let absurd = Bid { floor: Some(Fence::MAX), ..bid("a") };
    assert!(matches!(empty.acquire(now, &absurd), Acquire::Refused(_)));
    assert_eq!(empty, Table::default());
}
