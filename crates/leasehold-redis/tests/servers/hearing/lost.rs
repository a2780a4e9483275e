//! What was not heard.

use super::{next, until};
use crate::common::{bid, lease, let_go, open, win, won};
use leasehold_core::{Bid, LeaseState, LeaseStore, Scope, Sighting, Watch};
use leasehold_testkit::redis::Redis;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    time::timeout,
};

async fn trouble(watch: &mut Watch) {
    while !matches!(next(watch).await, Sighting::Trouble(_)) {}
}

/// B98: the lease is free, and nobody was told. Whoever waits bids when the claim would have ended, and not later.
#[tokio::test]
async fn a_change_that_nobody_tells_costs_the_ttl_and_no_more() {
    let server = Redis::new().start().await.unwrap();
    let (holder, waiter) = (open(&server.url()).await, open(&server.url()).await);
    let _held = won(holder.acquire(&Bid { ttl: Duration::from_millis(500), ..bid("job", "me") }).await);
    let mut watch = waiter.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    let seen = until(&mut watch, |record| record.claim().is_some()).await;
    let LeaseState::Held { remaining, .. } = seen.state else { panic!("{seen:?}") };
    server.cli(&["DEL", "leasehold:{job}:claim"]);
    assert!(timeout(remaining, watch.next()).await.is_err(), "nothing was told");
    assert_eq!(won(waiter.acquire(&bid("job", "waiter")).await).claim.fence.get(), 2);
}

/// The store forgot the lease while nobody could hear of it.
#[tokio::test]
async fn a_lease_that_the_store_has_lost_is_vacant_when_it_is_read_again() {
    let server = Redis::new().start().await.unwrap();
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    let granted = win(&other, "job").await;
    let mut watches = Vec::new();
    for scope in [Scope::All, Scope::Names(vec![lease("job"), lease("never there")])] {
        let mut watch = store.watch(scope).await.unwrap();
        until(&mut watch, |record| record.claim() == Some(&granted.claim)).await;
        watches.push(watch);
    }
    server.cli(&["FLUSHALL"]);
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    for watch in &mut watches {
        trouble(watch).await;
        let Sighting::State(seen) = next(watch).await else { panic!("trouble once") };
        assert_eq!((seen.name, seen.state, seen.counter), (lease("job"), LeaseState::Vacant, None));
    }
    // Its counter begins anew: the story goes on from below, and is told all the same.
    let again = win(&other, "job").await;
    for watch in &mut watches {
        until(watch, |record| record.claim() == Some(&again.claim)).await;
    }
}

/// An address that can be given to another server.
struct Switch {
    addr: SocketAddr,
    leads_to: Arc<Mutex<SocketAddr>>,
    listening: tokio::task::JoinHandle<()>,
}

impl Switch {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, leads_to) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(server)));
        let target = leads_to.clone();
        let listening = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let server = *target.lock().unwrap();
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await.unwrap();
                    copy_bidirectional(&mut client, &mut server).await.ok();
                });
            }
        });
        Self { addr, leads_to, listening }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// B34: the address leads to another server by now, and the requests go there. The old one is up, keeps its connections
/// and answers, and has nothing to tell any more.
#[tokio::test]
async fn a_subscription_that_stayed_with_the_old_server_is_found_out() {
    let (old, new) = (Redis::new().start().await.unwrap(), Redis::new().start().await.unwrap());
    let switch = Switch::to(old.addr()).await;
    let store = open(&format!("redis://{}", switch.addr)).await;
    let mut watch = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    let before = win(&store, "job").await;
    until(&mut watch, |record| record.claim() == Some(&before.claim)).await;
    *switch.leads_to.lock().unwrap() = new.addr();
    old.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let other = open(&new.url()).await;
    let granted = win(&other, "job").await;
    trouble(&mut watch).await;
    until(&mut watch, |record| record.claim() == Some(&granted.claim)).await;
    let_go(&other, &granted.claim).await;
    until(&mut watch, |record| record.state == LeaseState::Vacant).await;
}
