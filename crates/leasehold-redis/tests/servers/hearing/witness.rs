//! The crash witness: who is taken for dead, and who is not.

use super::{calls, ears, until};
use crate::common::{PATIENCE, bid, eventually, lease, open, renew, won};
use futures_util::future::join_all;
use leasehold_core::{
    Acquire, Bid, Claim, LeaseState, LeaseStore, Predecessor, Renew, Scope, StoreErrorKind,
};
use leasehold_redis::RedisStore;
use leasehold_testkit::{
    process::{Process, is_role},
    redis::{Cluster, Redis, RedisServer},
};
use std::{io::Write, time::Duration};

/// No test waits for its end.
const LONG: Duration = Duration::from_secs(3_600);

fn witnessed(name: &str) -> Bid {
    Bid { crash_witness: true, ttl: LONG, ..bid(name, "holder") }
}

async fn hold(store: &RedisStore, names: &[String]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for name in names {
        claims.push(won(store.acquire(&witnessed(name)).await).claim);
    }
    claims
}

fn jobs(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("job {n}")).collect()
}

/// How many witnesses a server sees.
fn seen_by(server: &RedisServer) -> usize {
    server.cli(&["PUBSUB", "CHANNELS", "leasehold:witness:*"]).text().lines().count()
}

/// Holds `job` until it is killed.
#[tokio::test]
#[ignore = "a role that other tests run as a process"]
async fn role_of_a_holder() {
    if !is_role("hearing::witness::role_of_a_holder") {
        return;
    }
    let store = open(&std::env::var("STORE").unwrap()).await;
    let claims = hold(&store, &["job".to_owned()]).await;
    println!("holds under {}", claims[0].fence);
    std::io::stdout().flush().unwrap();
    std::future::pending::<()>().await;
}

async fn holder(server: &RedisServer) -> Process {
    let mut role = Process::role("hearing::witness::role_of_a_holder");
    let mut holder = Process::spawn(role.env("STORE", server.url())).unwrap();
    holder.line("holds under 1", PATIENCE).await;
    holder
}

/// The claim has an hour to go: nothing but its witness can end it.
#[tokio::test]
async fn whoever_watches_is_told_that_a_killed_process_crashed_and_takes_its_lease() {
    let server = Redis::new().start().await.unwrap();
    let holder = holder(&server).await;
    let waiter = open(&server.url()).await;
    let mut watch = waiter.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    until(&mut watch, |record| record.claim().is_some()).await;
    assert!(matches!(waiter.acquire(&bid("job", "waiter")).await, Acquire::Held(_)));
    holder.kill();
    let told = until(&mut watch, |record| record.state == LeaseState::Vacant).await;
    assert!(matches!(told.predecessor, Predecessor::Crashed(_)), "{told:?}");
    let next = won(waiter.acquire(&bid("job", "waiter")).await);
    assert_eq!(next.claim.fence.get(), 2);
    assert!(matches!(next.predecessor, Predecessor::Crashed(_)));
    until(&mut watch, |record| record.claim() == Some(&next.claim)).await;
}

#[tokio::test]
async fn a_paused_process_keeps_its_lease() {
    let server = Redis::new().start().await.unwrap();
    let holder = holder(&server).await;
    let waiter = open(&server.url()).await;
    holder.pause();
    for _ in 0..20 {
        assert!(matches!(waiter.acquire(&bid("job", "waiter")).await, Acquire::Held(_)));
    }
    holder.kill();
    eventually("it is taken", async || {
        matches!(waiter.acquire(&bid("job", "waiter")).await, Acquire::Granted(_))
    })
    .await;
}

/// One request for all leases, however many, and none of the process that is asked for.
#[tokio::test]
async fn a_poll_is_one_request_and_nobody_asks_for_himself() {
    let server = Redis::new().start().await.unwrap();
    let (holder, waiter) = (open(&server.url()).await, open(&server.url()).await);
    let names = jobs(50);
    let claims = hold(&holder, &names).await;
    let mut own = holder.watch(Scope::All).await.unwrap();
    for _ in &names {
        until(&mut own, |record| record.claim().is_some()).await;
    }
    server.cli(&["CONFIG", "RESETSTAT"]);
    eventually("the connection is looked after", async || calls(&server, "publish") > 0).await;
    assert_eq!(calls(&server, "pubsub|numsub"), 0);

    let mut watch = waiter.watch(Scope::All).await.unwrap();
    for _ in &names {
        until(&mut watch, |record| record.claim().is_some()).await;
    }
    server.cli(&["CONFIG", "RESETSTAT"]);
    eventually("polls", async || calls(&server, "pubsub|numsub") >= 10).await;
    assert_eq!(calls(&server, "evalsha"), 0, "no lease is looked at");
    drop(holder);
    for _ in &claims {
        let told = until(&mut watch, |record| record.state == LeaseState::Vacant).await;
        assert!(matches!(told.predecessor, Predecessor::Crashed(_)), "{told:?}");
    }
    eventually("nobody is left to ask for", async || {
        let before = calls(&server, "pubsub|numsub");
        tokio::time::sleep(Duration::from_millis(100)).await;
        calls(&server, "pubsub|numsub") == before
    })
    .await;
}

/// The holder, too: without its witness it is not renewed, and the witness comes back.
#[tokio::test]
async fn a_holder_without_its_witness_is_told_until_it_is_seen_again() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let claim = hold(&store, &jobs(1)).await.remove(0);
    server.cli(&["ACL", "SETUSER", "default", "resetchannels", "&leasehold:{*"]);
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    eventually("refused", async || match renew(&store, &claim).await {
        Renew::Refused(error) => *error.kind() == StoreErrorKind::Unwitnessed,
        _ => false,
    })
    .await;
    server.cli(&["ACL", "SETUSER", "default", "&*"]);
    eventually("renewed", async || matches!(renew(&store, &claim).await, Renew::Renewed { .. })).await;
}

/// A claim behind a witness that nobody hears would be taken at once by the next who asks, from a holder that lives.
#[tokio::test]
async fn nothing_is_granted_behind_a_witness_that_is_not_heard() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    hold(&store, &jobs(1)).await;
    server.cli(&["ACL", "SETUSER", "default", "resetchannels", "&leasehold:{*"]);
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    let bid = witnessed("another");
    eventually("unseen", async || seen_by(&server) == 0).await;
    let kind = crate::common::refused(store.acquire(&bid).await);
    assert!(matches!(kind, StoreErrorKind::Unwitnessed | StoreErrorKind::Denied), "{kind:?}");
    assert_eq!(store.inspect(&bid.name).await.unwrap().counter, None, "nothing was written");
    server.cli(&["ACL", "SETUSER", "default", "&*"]);
    eventually("granted", async || matches!(store.acquire(&bid).await, Acquire::Granted(_))).await;
}

/// No renewal is needed for it: in the time until the next one anybody could take the lease.
#[tokio::test]
async fn a_witness_that_is_cut_off_comes_back_by_itself() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let claim = hold(&store, &jobs(1)).await.remove(0);
    for _ in 0..3 {
        let before = ears(&server);
        server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        eventually("it is seen again", async || seen_by(&server) == 1 && ears(&server) != before).await;
        assert!(matches!(renew(&store, &claim).await, Renew::Renewed { .. }));
    }
}

/// Each of many renewals that were refused reports it; those that come late must not cut off what came back.
#[tokio::test]
async fn late_complaints_leave_a_witness_that_is_seen_alone() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let claims = hold(&store, &jobs(50)).await;
    // Nobody may subscribe, so that all of them are refused.
    server.cli(&["ACL", "SETUSER", "default", "resetchannels", "&leasehold:{*"]);
    eventually("cut off", async || seen_by(&server) == 0).await;
    let answers = join_all(claims.iter().map(|claim| renew(&store, claim))).await;
    assert!(answers.iter().all(|answer| matches!(answer, Renew::Refused(_))), "{answers:?}");
    let complaints = join_all(claims.iter().map(|claim| renew(&store, claim)));
    server.cli(&["ACL", "SETUSER", "default", "&*"]);
    complaints.await;
    eventually("it is seen again", async || seen_by(&server) == 1).await;
    let ear = ears(&server);
    for claim in &claims {
        assert!(matches!(renew(&store, claim).await, Renew::Renewed { .. }));
    }
    assert_eq!(ears(&server), ear, "still the same connection");
}

#[tokio::test]
async fn a_witness_in_a_cluster_is_seen_by_every_node_and_missed_at_each() {
    let cluster = Cluster::start().await.unwrap();
    let (holder, waiter) = (open(&cluster.url()).await, open(&cluster.url()).await);
    let names = jobs(12);
    hold(&holder, &names).await;
    for name in &names {
        assert!(matches!(waiter.acquire(&bid(name, "waiter")).await, Acquire::Held(_)), "{name}");
    }
    let mut watch = waiter.watch(Scope::All).await.unwrap();
    for _ in &names {
        until(&mut watch, |record| record.claim().is_some()).await;
    }
    drop(holder);
    for _ in &names {
        let told = until(&mut watch, |record| record.state == LeaseState::Vacant).await;
        assert!(matches!(told.predecessor, Predecessor::Crashed(_)), "{told:?}");
    }
    for name in &names {
        let next = won(waiter.acquire(&bid(name, "waiter")).await);
        assert_eq!(next.claim.fence.get(), 2);
    }
}

#[tokio::test]
async fn a_witness_that_one_node_of_a_cluster_cut_off_comes_back_there_by_itself() {
    let cluster = Cluster::start().await.unwrap();
    let store = open(&cluster.url()).await;
    let claims = hold(&store, &jobs(12)).await;
    for at in 0..3 {
        let all = || cluster.nodes.iter().map(ears).collect::<Vec<_>>();
        let before = all();
        cluster.nodes[at].cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        eventually("it is seen again", async || {
            all()[at] != before[at] && cluster.nodes.iter().all(|node| seen_by(node) == 1)
        })
        .await;
        let after = all();
        assert!((0..3).all(|other| other == at || after[other] == before[other]), "each for itself");
    }
    for claim in &claims {
        assert!(matches!(renew(&store, claim).await, Renew::Renewed { .. }));
    }
}

/// A claim's witness is looked at by the primary that has the claim's slot, and by no other.
#[tokio::test]
async fn a_primary_that_is_down_costs_no_other_lease_its_witness() {
    let mut cluster = Cluster::start().await.unwrap();
    cluster.nodes[2].kill().await;
    let alive = cluster.nodes.iter().take(2).map(|node| node.addr().to_string()).collect::<Vec<_>>();
    let address = format!("redis+cluster://{}", alive.join(","));
    let (holder, waiter) = (open(&address).await, open(&address).await);
    let home = |name: &String| cluster.owner(cluster.slot(&format!("leasehold:{{{name}}}:claim")));
    let (down, up): (Vec<_>, Vec<_>) = jobs(12).into_iter().partition(|name| home(name) == 2);
    assert!(!down.is_empty() && up.len() > 4);
    let mut claims = Vec::new();
    for name in &up {
        // The first witness of the process, made while a primary is away.
        let mut granted = None;
        eventually("a grant", async || {
            if let Acquire::Granted(new) = holder.acquire(&witnessed(name)).await {
                granted = Some(new);
            }
            granted.is_some()
        })
        .await;
        claims.push(granted.unwrap().claim);
        assert!(matches!(waiter.acquire(&bid(name, "waiter")).await, Acquire::Held(_)), "{name}");
    }
    for claim in &claims {
        assert!(matches!(renew(&holder, claim).await, Renew::Renewed { .. }), "{claim:?}");
    }
    let refused = holder.acquire(&witnessed(&down[0])).await;
    assert!(
        matches!(refused, Acquire::Refused(_)),
        "where nobody would see it, no claim is made: {refused:?}"
    );
    // Back again, and seen there by itself.
    cluster.nodes[2].restart().await.unwrap();
    eventually("it is seen there, too", async || seen_by(&cluster.nodes[2]) == 1).await;
    eventually("it is granted", async || {
        matches!(holder.acquire(&witnessed(&down[0])).await, Acquire::Granted(_))
    })
    .await;
    assert!(matches!(waiter.acquire(&bid(&down[0], "waiter")).await, Acquire::Held(_)));
}

/// A primary that was not there when the witness was connected, and that a lease moves to.
#[tokio::test]
async fn a_primary_that_joins_a_cluster_sees_the_witness_soon() {
    let mut cluster = Cluster::start().await.unwrap();
    let store = open(&cluster.url()).await;
    let claim = hold(&store, &jobs(1)).await.remove(0);
    cluster.nodes.push(Redis::new().cluster_node().start().await.unwrap());
    let other_bus = cluster.nodes[0].bus().unwrap().to_string();
    let (ip, port) = (cluster.nodes[0].addr().ip().to_string(), cluster.nodes[0].addr().port().to_string());
    cluster.nodes[3].cli(&["CLUSTER", "MEET", &ip, &port, &other_bus]);
    eventually("all know each other", async || {
        let info = |node: &RedisServer| node.cli(&["CLUSTER", "INFO"]).text();
        let serves = |info: &str| info.contains("cluster_known_nodes:4") && info.contains("cluster_state:ok");
        cluster.nodes.iter().all(|node| serves(&info(node)))
    })
    .await;
    let slot = cluster.slot("leasehold:{job 0}:claim");
    cluster.move_slot(slot, cluster.owner(slot), 3);
    eventually("it is seen there", async || seen_by(&cluster.nodes[3]) == 1).await;
    eventually("it is renewed", async || matches!(renew(&store, &claim).await, Renew::Renewed { .. })).await;
}
