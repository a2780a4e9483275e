//! Clusters whose nodes fail, move their slots, or fall silent.

use crate::common::{PATIENCE, TTL, bid, eventually, lease, let_go, open, renew, win, won};
use leasehold_core::{Acquire, LeaseStore, Parting, Release, Renew, Renewal, Scope, StoreErrorKind};
use leasehold_testkit::{
    faults::Proxy,
    redis::{Cluster, Redis},
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

fn place(cluster: &Cluster, name: &str) -> usize {
    cluster.owner(cluster.slot(&format!("leasehold:{{{name}}}:claim")))
}

/// Names of which each node has some.
fn names(cluster: &Cluster) -> Vec<String> {
    let mut names = Vec::new();
    for at in 0..cluster.nodes.len() {
        let of = (0..).map(|n| format!("job {n}")).filter(|name| place(cluster, name) == at);
        names.extend(of.take(3));
    }
    names
}

/// A proxy before each node, by whose port the nodes know it.
async fn behind_proxies(cluster: &Cluster) -> (Vec<Proxy>, String) {
    let mut proxies = Vec::new();
    for node in &cluster.nodes {
        let proxy = Proxy::start(node.addr()).await.unwrap();
        node.cli(&["CONFIG", "SET", "cluster-announce-port", &proxy.addr().port().to_string()]);
        proxies.push(proxy);
    }
    eventually("all nodes name the proxies", async || {
        cluster.nodes.iter().all(|node| {
            let slots = node.cli(&["CLUSTER", "SLOTS"]).text();
            proxies.iter().all(|proxy| slots.contains(&proxy.addr().port().to_string()))
        })
    })
    .await;
    let hosts: Vec<String> = proxies.iter().map(|proxy| proxy.addr().to_string()).collect();
    (proxies, format!("redis+cluster://{}", hosts.join(",")))
}

/// I7: what must not be repeated is not, and what may be is, once.
#[tokio::test]
async fn a_reply_that_a_node_loses_is_never_taken_for_a_no() {
    let cluster = Cluster::start().await.unwrap();
    let (proxies, url) = behind_proxies(&cluster).await;
    let store = open(&url).await;
    for name in names(&cluster) {
        let proxy = &proxies[place(&cluster, &name)];
        // The scripts are known from here on: one request, one reply.
        let warm = win(&store, &name).await;
        assert!(matches!(renew(&store, &warm.claim).await, Renew::Renewed { .. }));
        let_go(&store, &warm.claim).await;
        proxy.lose_reply(1);
        let granted = won(store.acquire(&bid(&name, "me")).await);
        assert_eq!(granted.claim.fence.get(), 2, "granted once");
        proxy.lose_reply(1);
        assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
        proxy.lose_reply(1);
        // The repetition is known as one.
        assert_eq!(store.release(&granted.claim, &Parting::default()).await, Release::Released);
        assert_eq!(
            cluster.nodes[place(&cluster, &name)]
                .cli(&["EXISTS", &format!("leasehold:{{{name}}}:claim")])
                .number(),
            Some(0)
        );
    }
}

#[tokio::test]
async fn a_silent_node_keeps_no_answers_of_the_others() {
    let cluster = Cluster::start().await.unwrap();
    let store = open(&format!("{}?response_timeout=300ms&timeout=300ms", cluster.url())).await;
    let names = names(&cluster);
    let mut renewals = Vec::new();
    for name in &names {
        renewals.push(Renewal { claim: win(&store, name).await.claim, ttl: TTL });
    }
    cluster.nodes[1].pause();
    for _ in 0..3 {
        let answers = timeout(PATIENCE, store.renew(&renewals)).await.expect("an end");
        for (name, answer) in names.iter().zip(answers) {
            if place(&cluster, name) == 1 {
                assert!(matches!(answer, Renew::Unknown(_) | Renew::Refused(_)), "{name}: {answer:?}");
            } else {
                assert!(matches!(answer, Renew::Renewed { .. }), "{name}: {answer:?}");
            }
        }
    }
    cluster.nodes[1].resume();
    eventually("all are renewed", async || {
        store.renew(&renewals).await.iter().all(|answer| matches!(answer, Renew::Renewed { .. }))
    })
    .await;
}

/// What the old node has not any more is asked for at the new one, and what is nowhere yet waits.
#[tokio::test]
async fn a_slot_on_its_way_is_asked_for_at_both_ends() {
    let cluster = Cluster::start().await.unwrap();
    for node in &cluster.nodes {
        let mut words = vec!["ACL", "SETUSER", "lh", "on", ">pw"];
        words.extend(crate::deployments::ACL.split_whitespace());
        words.extend(crate::deployments::CLUSTER_ACL.split_whitespace());
        node.cli(&words);
    }
    let store = open(&cluster.url().replace("://", "://lh:pw@")).await;
    let slot = cluster.slot("leasehold:{job}:claim");
    let (from, to) = (cluster.owner(slot), (cluster.owner(slot) + 1) % 3);
    let id = |at: usize| cluster.nodes[at].cli(&["CLUSTER", "MYID"]).text();
    let text = slot.to_string();
    let granted = win(&store, "job").await;
    cluster.nodes[to].cli(&["CLUSTER", "SETSLOT", &text, "IMPORTING", &id(from)]);
    cluster.nodes[from].cli(&["CLUSTER", "SETSLOT", &text, "MIGRATING", &id(to)]);
    let (host, port) =
        (cluster.nodes[to].addr().ip().to_string(), cluster.nodes[to].addr().port().to_string());
    for key in ["leasehold:{job}:claim", "leasehold:{job}:fence"] {
        cluster.nodes[from].cli(&["MIGRATE", &host, &port, key, "0", "1000"]);
    }
    assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
    let_go(&store, &granted.claim).await;
    // There is no claim at either end now, and the new one is not sure yet that it is not on its way.
    let wanted = bid("job", "me");
    let Acquire::Refused(error) = store.acquire(&wanted).await else { panic!("nobody has the slot") };
    assert_eq!(*error.kind(), StoreErrorKind::Unreachable);
    for at in [to, from] {
        cluster.nodes[at].cli(&["CLUSTER", "SETSLOT", &text, "NODE", &id(to)]);
    }
    assert_eq!(won(store.acquire(&wanted).await).claim.fence.get(), 2);
}

/// One primary is gone, and nobody has taken its place.
#[tokio::test]
async fn a_primary_that_is_gone_takes_no_others_with_it() {
    let mut cluster = Cluster::start().await.unwrap();
    let store = open(&format!("{}?timeout=300ms", cluster.url())).await;
    let names = names(&cluster);
    let lost: Vec<bool> = names.iter().map(|name| place(&cluster, name) == 0).collect();
    cluster.nodes[0].kill().await;
    for (name, lost) in names.iter().zip(lost) {
        let answer = timeout(PATIENCE, store.acquire(&bid(name, "me"))).await.expect("an end");
        assert_eq!(matches!(answer, Acquire::Granted(_)), !lost, "{name}: {answer:?}");
    }
    // Whoever hears begins at another one each time, and goes on to the next if it is the one that is gone.
    for _ in 0..3 {
        let store = open(&format!("{}?timeout=300ms", cluster.url())).await;
        timeout(PATIENCE, store.watch(Scope::Names(vec![lease(names.last().unwrap())])))
            .await
            .expect("an end")
            .unwrap();
    }
    cluster.nodes[0].restart().await.unwrap();
    eventually("it is found again", async || {
        matches!(store.acquire(&bid(&names[0], "me")).await, Acquire::Granted(_))
    })
    .await;
}

/// A replica takes the place of a primary that died: renewals find it, which go to all nodes together.
#[tokio::test]
async fn renewals_find_the_replica_that_took_over() {
    let mut cluster = Cluster::start().await.unwrap();
    let replica = Redis::new().cluster_node().start().await.unwrap();
    let (addr, port) = (replica.addr().ip().to_string(), replica.addr().port().to_string());
    cluster.nodes[0].cli(&["CLUSTER", "MEET", &addr, &port, &replica.bus().unwrap().to_string()]);
    let id = cluster.nodes[0].cli(&["CLUSTER", "MYID"]).text();
    eventually("it knows whom to follow", async || {
        replica.try_cli(&["CLUSTER", "REPLICATE", &id]).unwrap().text() == "OK"
    })
    .await;
    eventually("it follows", async || {
        replica.cli(&["INFO", "replication"]).text().contains("master_link_status:up")
    })
    .await;
    let store = open(&format!("{}?timeout=300ms", cluster.url())).await;
    let mut renewals = Vec::new();
    for name in names(&cluster) {
        renewals.push(Renewal { claim: win(&store, &name).await.claim, ttl: TTL });
    }
    eventually("the replica has them all", async || {
        replica.cli(&["DBSIZE"]).number() == cluster.nodes[0].cli(&["DBSIZE"]).number()
    })
    .await;
    cluster.nodes[0].kill().await;
    replica.cli(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    eventually("all are renewed", async || {
        store.renew(&renewals).await.iter().all(|answer| matches!(answer, Renew::Renewed { .. }))
    })
    .await;
}

/// Callers whose deadline is shorter than anything takes.
#[tokio::test]
async fn a_node_that_is_cut_off_is_found_again_by_callers_in_a_hurry() {
    let cluster = Cluster::start().await.unwrap();
    let (proxies, url) = behind_proxies(&cluster).await;
    let store = open(&format!("{url}?response_timeout=100ms&timeout=100ms")).await;
    let name = &names(&cluster)[0];
    let_go(&store, &win(&store, name).await.claim).await;
    let proxy = &proxies[place(&cluster, name)];
    let made = proxy.connections();
    proxy.blackhole(leasehold_testkit::faults::Direction::Both);
    eventually("another connection is tried", async || {
        timeout(Duration::from_millis(5), store.acquire(&bid(name, "me"))).await.ok();
        proxy.connections() > made
    })
    .await;
    proxy.heal();
    eventually("a lease", async || {
        matches!(store.acquire(&bid("another", "me")).await, Acquire::Granted(_) | Acquire::Held(_))
    })
    .await;
}

/// A request that began on one runtime is dropped on another one, which ends. The connection that is made for want of an answer
/// lives where those are who use it.
#[tokio::test]
async fn a_connection_is_not_made_on_a_runtime_that_only_dropped_a_request() {
    let cluster = Cluster::start().await.unwrap();
    let store = Arc::new(open(&format!("{}?response_timeout=200ms&timeout=200ms", cluster.url())).await);
    let name = "job";
    let_go(&store, &win(&store, name).await.claim).await;
    for node in &cluster.nodes {
        node.pause();
    }
    let asking = store.clone();
    let mut request = Box::pin(async move { asking.acquire(&bid(name, "me")).await });
    assert!(timeout(Duration::from_millis(20), &mut request).await.is_err(), "nobody answers");
    let elsewhere = tokio::task::spawn_blocking(move || {
        let other = tokio::runtime::Runtime::new().unwrap();
        other.block_on(async {
            drop(request);
            // Time to find out that nobody answers, and to connect.
            tokio::time::sleep(Duration::from_millis(250)).await;
        });
        other
    });
    let other = elsewhere.await.unwrap();
    for node in &cluster.nodes {
        node.resume();
    }
    // What is being connected by now may come to its end.
    tokio::time::sleep(Duration::from_millis(500)).await;
    other.shutdown_background();
    eventually("it is reached", async || store.inspect(&lease(name)).await.is_ok()).await;
}
