//! What is heard, and what happens when it is not.

use crate::common::{PATIENCE, bid, eventually, lease, let_go, open, win, won};
use leasehold_core::{
    LeaseRecord, LeaseState, LeaseStore, Predecessor, Renew, Scope, Sighting, StoreErrorKind, Watch,
};
use leasehold_testkit::redis::{Cluster, Redis};
use tokio::time::timeout;

async fn next(watch: &mut Watch) -> Sighting {
    timeout(PATIENCE, watch.next()).await.expect("a sighting").expect("an open watch")
}

/// Reads on until a state is shown that is looked for.
async fn until(watch: &mut Watch, wanted: impl Fn(&LeaseRecord) -> bool) -> LeaseRecord {
    loop {
        if let Sighting::State(record) = next(watch).await
            && wanted(&record)
        {
            return record;
        }
    }
}

/// B100: the subscription is cut; whatever happened meanwhile is read.
#[tokio::test]
async fn a_subscription_that_was_cut_is_made_again_and_nothing_stays_missed() {
    let server = Redis::new().start().await.unwrap();
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    let mut watch = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    // Nobody can subscribe, so that the change falls into the gap.
    server.cli(&["ACL", "SETUSER", "default", "resetchannels"]);
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    loop {
        if matches!(next(&mut watch).await, Sighting::Trouble(_)) {
            break;
        }
    }
    server.cli(&["ACL", "SETUSER", "default", "&leasehold:{job}:events"]);
    let granted = win(&other, "job").await;
    let seen = until(&mut watch, |record| record.claim().is_some()).await;
    assert_eq!(seen.claim(), Some(&granted.claim));
    let_go(&other, &granted.claim).await;
    until(&mut watch, |record| record.state == LeaseState::Vacant).await;
}

#[tokio::test]
async fn a_server_that_restarts_is_watched_again() {
    let mut server = Redis::new().appendonly("always").start().await.unwrap();
    let store = open(&server.url()).await;
    let mut watch = store.watch(Scope::All).await.unwrap();
    server.restart().await.unwrap();
    let mut granted = None;
    eventually("a grant", async || {
        if let leasehold_core::Acquire::Granted(new) = store.acquire(&bid("job", "me")).await {
            granted = Some(new);
        }
        granted.is_some()
    })
    .await;
    until(&mut watch, |record| record.claim() == granted.as_ref().map(|granted| &granted.claim)).await;
}

/// A store may be opened on one runtime and used on another, which the first does not outlive.
#[test]
fn a_store_hears_on_after_the_runtime_that_opened_it_has_ended() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let lasting = runtime();
    let server = lasting.block_on(Redis::new().start()).unwrap();
    let first = runtime();
    let store = first.block_on(async {
        let store = open(&server.url()).await;
        let mut watch = store.watch(Scope::All).await.unwrap();
        let granted = win(&store, "job").await;
        until(&mut watch, |record| record.claim() == Some(&granted.claim)).await;
        let_go(&store, &granted.claim).await;
        store
    });
    drop(first);
    lasting.block_on(async {
        let mut watch = store.watch(Scope::All).await.unwrap();
        let granted = win(&store, "job").await;
        until(&mut watch, |record| record.claim() == Some(&granted.claim)).await;
        let mut seen = bid("seen", "me");
        seen.crash_witness = true;
        let seen = won(store.acquire(&seen).await);
        assert!(matches!(crate::common::renew(&store, &seen.claim).await, Renew::Renewed { .. }));
    });
    let _entered = lasting.enter();
    drop(store);
}

/// A thousand watchers cost the server one message, and no question.
#[tokio::test]
async fn a_vacancy_costs_no_request_however_many_wait_for_it() {
    let server = Redis::new().start().await.unwrap();
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    let granted = win(&other, "job").await;
    let mut watches = Vec::new();
    for _ in 0..1_000 {
        let mut watch = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
        until(&mut watch, |record| record.claim().is_some()).await;
        watches.push(watch);
    }
    assert_eq!(
        server.cli(&["PUBSUB", "NUMSUB", "leasehold:{job}:events"]).field("leasehold:{job}:events"),
        Some("1".into())
    );
    server.cli(&["CONFIG", "RESETSTAT"]);
    let_go(&other, &granted.claim).await;
    for watch in &mut watches {
        until(watch, |record| record.state == LeaseState::Vacant).await;
    }
    let stats = server.cli(&["INFO", "commandstats"]).text();
    let scripts = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap();
    assert!(scripts.starts_with("1,"), "only the release itself: {scripts}");
}

/// The process of a holder ends: whoever watches is told at once that it crashed, and takes the lease.
#[tokio::test]
async fn a_holder_whose_witness_ends_has_crashed() {
    let server = Redis::new().start().await.unwrap();
    let (holder, waiter) = (open(&server.url()).await, open(&server.url()).await);
    let mut wanted = bid("job", "holder");
    wanted.crash_witness = true;
    let granted = won(holder.acquire(&wanted).await);
    let mut watch = waiter.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    until(&mut watch, |record| record.claim().is_some()).await;
    assert!(matches!(waiter.acquire(&bid("job", "waiter")).await, leasehold_core::Acquire::Held(_)));
    drop(holder);
    let seen = until(&mut watch, |record| record.state == LeaseState::Vacant).await;
    assert!(matches!(seen.predecessor, Predecessor::Crashed(_)), "{seen:?}");
    let next = won(waiter.acquire(&bid("job", "waiter")).await);
    assert!(next.claim.fence > granted.claim.fence);
    assert!(matches!(next.predecessor, Predecessor::Crashed(_)));
}

#[tokio::test]
async fn a_witness_in_a_cluster_is_seen_by_every_node() {
    let cluster = Cluster::start().await.unwrap();
    let (holder, waiter) = (open(&cluster.url()).await, open(&cluster.url()).await);
    let names: Vec<String> = (0..12).map(|n| format!("job {n}")).collect();
    for name in &names {
        let mut wanted = bid(name, "holder");
        wanted.crash_witness = true;
        let _ = won(holder.acquire(&wanted).await);
    }
    for name in &names {
        assert!(
            matches!(waiter.acquire(&bid(name, "waiter")).await, leasehold_core::Acquire::Held(_)),
            "{name}"
        );
    }
    drop(holder);
    for name in &names {
        eventually("it is taken", async || {
            matches!(waiter.acquire(&bid(name, "waiter")).await, leasehold_core::Acquire::Granted(_))
        })
        .await;
    }
}

/// The holder, too: without its witness it is not renewed, and the witness comes back.
#[tokio::test]
async fn a_holder_without_its_witness_is_told_until_it_is_seen_again() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let mut wanted = bid("job", "holder");
    wanted.crash_witness = true;
    let granted = won(store.acquire(&wanted).await);
    server.cli(&["ACL", "SETUSER", "default", "resetchannels", "&leasehold:{*"]);
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    eventually("refused", async || match crate::common::renew(&store, &granted.claim).await {
        Renew::Refused(error) => *error.kind() == StoreErrorKind::Unwitnessed,
        _ => false,
    })
    .await;
    server.cli(&["ACL", "SETUSER", "default", "&*"]);
    eventually("renewed", async || {
        matches!(crate::common::renew(&store, &granted.claim).await, Renew::Renewed { .. })
    })
    .await;
}
