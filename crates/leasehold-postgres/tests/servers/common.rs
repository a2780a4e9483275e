//! Shared by these tests.

use leasehold_core::{
    Acquire, AttemptId, Bid, Claim, Granted, LeaseStore, Parting, Release, Renew, Renewal, StoreErrorKind,
    TraceContext,
};
use leasehold_postgres::{Config, PostgresStore, migrate};
pub(crate) use leasehold_testkit::conformance::{lease, replica, won};
use leasehold_testkit::postgres::{Postgres, PostgresServer};
use std::time::Duration;

pub(crate) const TTL: Duration = Duration::from_secs(30);
/// Far above what anything here needs: it turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn open(address: &str) -> PostgresStore {
    PostgresStore::open(address).await.unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn bid(name: &str, by: &str) -> Bid {
    Bid {
        name: lease(name),
        replica: replica(by),
        attempt: AttemptId::random(),
        ttl: TTL,
        floor: None,
        crash_witness: false,
        trace: TraceContext::NONE,
    }
}

pub(crate) async fn win(store: &PostgresStore, name: &str) -> Granted {
    won(store.acquire(&bid(name, "me")).await)
}

pub(crate) async fn renew(store: &PostgresStore, claim: &Claim) -> Renew {
    store.renew(&[Renewal { claim: claim.clone(), ttl: TTL }]).await.pop().unwrap()
}

pub(crate) async fn let_go(store: &PostgresStore, claim: &Claim) {
    assert_eq!(store.release(claim, &Parting::default()).await, Release::Released);
}

/// Wins, renews and releases a lease that nobody else wants.
pub(crate) async fn round(store: &PostgresStore, name: &str) {
    let granted = win(store, name).await;
    assert!(matches!(renew(store, &granted.claim).await, Renew::Renewed { .. }));
    let_go(store, &granted.claim).await;
}

/// Waits until something holds that needs no push from us.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let all = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, all).await.is_err() {
        panic!("never: {what}");
    }
}

/// Why an acquire was not carried out, certainly.
#[track_caller]
pub(crate) fn refused(answer: Acquire) -> StoreErrorKind {
    match answer {
        Acquire::Refused(error) => error.kind().clone(),
        other => panic!("it was to be refused: {other:?}"),
    }
}

/// A server with the layout.
pub(crate) async fn server(postgres: Postgres) -> PostgresServer {
    let server = postgres.start().await.unwrap();
    lay_out(&server).await;
    server
}

pub(crate) async fn lay_out(server: &PostgresServer) {
    migrate(&Config::parse(&server.url()).unwrap()).await.unwrap();
}

/// An address with one more parameter.
pub(crate) fn with(url: &str, parameter: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{parameter}")
}
