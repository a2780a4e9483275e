//! Behind a pooler that gives each transaction another session.

use crate::common::{PATIENCE, bid, open, refused, renew, round, server, win};
use leasehold_core::{
    Bid, FenceGate, LeaseState, LeaseStore, Mail, Parting, Release, Scope, Sighting, StoreErrorKind,
};
use leasehold_testkit::{
    conformance::{lease, replica},
    postgres::{PgBouncer, PoolMode, Postgres},
};
use tokio::time::timeout;

#[tokio::test]
async fn leases_are_held_and_seen_though_no_session_lasts() {
    let server = server(Postgres::new()).await;
    let pooler = PgBouncer::new(PoolMode::Transaction).in_front_of(&server).await.unwrap();
    let (store, other) = (open(&pooler.url()).await, open(&pooler.url()).await);
    round(&store, "job").await;
    let granted = win(&store, "job").await;
    let mut watch = other.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    let mut next = async || {
        loop {
            match timeout(PATIENCE, watch.next()).await.expect("a sighting").expect("an open store") {
                Sighting::State(record) => return record.state,
                Sighting::Trouble(_) => {}
            }
        }
    };
    assert!(matches!(next().await, LeaseState::Held { .. }));
    drop(renew(&store, &granted.claim).await);
    assert_eq!(store.release(&granted.claim, &Parting::default()).await, Release::Released);
    assert!(matches!(next().await, LeaseState::Vacant), "it is found by asking");
    // A gate is a transaction, which is kept together.
    let granted = win(&store, "job").await;
    let file = leasehold_core::ResourceName::new("file").unwrap();
    let job = lease("job");
    let guard = store.hold_gate(&file, &job, granted.claim.fence).await.unwrap();
    let second = other.hold_gate(&file, &job, granted.claim.fence);
    tokio::pin!(second);
    timeout(std::time::Duration::from_millis(100), &mut second).await.expect_err("it is shut");
    drop(guard);
    timeout(PATIENCE, second).await.expect("it opens").unwrap();
    // Letters come, too.
    let mut inbox = other.inbox(&replica("b")).await.unwrap();
    let letter = leasehold_core::Envelope {
        from: replica("a"),
        lease: lease("job"),
        kind: "test".into(),
        body: (*b"x").into(),
        trace: leasehold_core::TraceContext::NONE,
    };
    store.post(&replica("b"), &letter).await.unwrap();
    assert_eq!(timeout(PATIENCE, inbox.next()).await.unwrap(), Some(letter));
}

#[tokio::test]
async fn there_is_no_witness_and_both_the_bid_and_the_doctor_say_why() {
    let server = server(Postgres::new()).await;
    let pooler = PgBouncer::new(PoolMode::Transaction).in_front_of(&server).await.unwrap();
    let store = open(&pooler.url()).await;
    let kind = refused(store.acquire(&Bid { crash_witness: true, ..bid("job", "me") }).await);
    match kind {
        StoreErrorKind::Config(why) => assert!(why.contains("pooler"), "{why}"),
        other => panic!("{other:?}"),
    }
    let codes: Vec<_> = store.diagnose().await.unwrap().into_iter().map(|finding| finding.code).collect();
    assert!(codes.contains(&"pooler"), "{codes:?}");
    // Where it keeps sessions, and where there is none, all is well.
    let keeping = PgBouncer::new(PoolMode::Session).in_front_of(&server).await.unwrap();
    for url in [keeping.url(), server.url()] {
        let store = open(&url).await;
        let codes: Vec<_> = store.diagnose().await.unwrap().into_iter().map(|finding| finding.code).collect();
        assert!(!codes.contains(&"pooler"), "{codes:?}");
        let bid = Bid { crash_witness: true, ..bid(&format!("job at {url}"), "me") };
        assert!(matches!(store.acquire(&bid).await, leasehold_core::Acquire::Granted(_)));
    }
}
