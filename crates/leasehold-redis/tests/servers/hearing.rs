//! What is heard, and what happens when it is not.

mod apart;
mod lifetime;
mod lost;
mod poll;
mod witness;

use crate::common::{PATIENCE, bid, eventually, lease, let_go, open, win, won};
use leasehold_core::{LeaseRecord, LeaseState, LeaseStore, Renew, Scope, Sighting, Watch};
use leasehold_testkit::redis::{Redis, RedisServer};
use tokio::time::timeout;

/// How often a server was asked something since its statistics began anew.
fn calls(server: &RedisServer, command: &str) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]).text();
    let calls = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    calls.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// The connections on which a server tells something: by their ids, which are never used again.
fn ears(server: &RedisServer) -> Vec<String> {
    let list = server.cli(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
    list.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

pub(crate) async fn next(watch: &mut Watch) -> Sighting {
    timeout(PATIENCE, watch.next()).await.expect("a sighting").expect("an open watch")
}

/// Reads on until a state is shown that is looked for.
pub(crate) async fn until(watch: &mut Watch, wanted: impl Fn(&LeaseRecord) -> bool) -> LeaseRecord {
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
