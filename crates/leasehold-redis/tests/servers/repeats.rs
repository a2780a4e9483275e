//! Connections that are lost while somebody waits, and what is told then.

use crate::common::{PATIENCE, bid, eventually, let_go, open, refused, round, win, won};
use leasehold_core::{Acquire, LeaseStore, StoreErrorKind};
use leasehold_testkit::{
    faults::{Direction, Proxy},
    redis::{Redis, RedisServer},
};
use std::time::Duration;
use tokio::{net::TcpListener, time::timeout};

/// How many connections a store has to the server.
fn connections(server: &RedisServer) -> usize {
    server.cli(&["CLIENT", "LIST"]).text().lines().filter(|client| client.contains("name=leasehold")).count()
}

/// I7: an acquire is carried out, its answer is lost, and its repetition is refused: by the server, by the script, or
/// because nobody is let in any more. The lease may be held all the same.
#[tokio::test]
async fn a_repetition_that_is_refused_says_nothing_of_what_the_first_one_did() {
    type Setting<'a> = &'a [&'a str];
    let cases: [(Setting<'_>, Setting<'_>, StoreErrorKind); 3] = [
        (&["-eval", "-evalsha"], &["+eval", "+evalsha"], StoreErrorKind::Denied),
        (&["-get"], &["+get"], StoreErrorKind::Denied),
        (&["resetpass", ">new"], &["resetpass", ">pw"], StoreErrorKind::Denied),
    ];
    for (refusing, repaired, kind) in cases {
        let server = Redis::new().start().await.unwrap();
        let set = |rights: &[&str]| server.cli(&[&["ACL", "SETUSER", "me", "on"], rights].concat());
        set(&[">pw", "~*", "&*", "+@all"]);
        let proxy = Proxy::start(server.addr()).await.unwrap();
        let store = open(&format!("redis://me:pw@{}?response_timeout=30s", proxy.addr())).await;
        round(&store, "warm").await;
        proxy.hold(Direction::Down);
        let wanted = bid("job", "me");
        let cutting = async {
            eventually("it is carried out", async || {
                server.cli(&["EXISTS", "leasehold:{job}:claim"]).number() == Some(1)
            })
            .await;
            set(refusing);
            let broken = proxy.broken();
            proxy.reset();
            // What is held is not to be delivered after all.
            eventually("the connection is reset", async || proxy.broken() > broken).await;
            proxy.heal();
        };
        let (answer, ()) =
            timeout(PATIENCE, async { tokio::join!(store.acquire(&wanted), cutting) }).await.unwrap();
        let Acquire::Unknown(error) = answer else { panic!("{refusing:?}: {answer:?}") };
        assert_eq!(*error.kind(), kind, "{refusing:?}");
        set(repaired);
        eventually("settled by its attempt id", async || {
            matches!(store.acquire(&wanted).await, Acquire::Granted(granted) if granted.claim.fence.get() == 1)
        })
        .await;
        // And a refusal that follows nothing is one.
        set(&["-eval", "-evalsha"]);
        assert_eq!(refused(store.acquire(&bid("next", "me")).await), StoreErrorKind::Denied);
    }
}

/// Connecting takes longer than any caller waits.
#[tokio::test]
async fn callers_in_a_hurry_get_a_connection_made_all_the_same() {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let store = open(&format!("redis://{}", proxy.addr())).await;
    proxy.delay(Direction::Both, Duration::from_millis(50));
    proxy.reset();
    eventually("the old connection is gone", async || connections(&server) == 0).await;
    eventually("a new connection", async || {
        timeout(Duration::from_millis(5), store.acquire(&bid("job", "me"))).await.ok();
        connections(&server) == 1
    })
    .await;
    let made = proxy.connections();
    proxy.heal();
    round(&store, "next").await;
    assert_eq!(proxy.connections(), made, "it is the one that is used");
}

/// A cut cable, which nobody closes: each caller gives up before `response_timeout`.
#[tokio::test]
async fn a_half_open_connection_is_given_up_though_every_caller_was_in_a_hurry() {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let store = open(&format!("redis://{}?response_timeout=100ms&timeout=100ms", proxy.addr())).await;
    round(&store, "warm").await;
    let made = proxy.connections();
    proxy.blackhole(Direction::Both);
    eventually("another connection is tried", async || {
        timeout(Duration::from_millis(5), store.acquire(&bid("job", "me"))).await.ok();
        proxy.connections() > made
    })
    .await;
    proxy.heal();
    eventually("a lease", async || matches!(store.acquire(&bid("next", "me")).await, Acquire::Granted(_)))
        .await;
}

/// A server that is merely slow loses no connection over callers in a hurry.
#[tokio::test]
async fn a_slow_server_keeps_its_connection() {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let store = open(&format!("redis://{}", proxy.addr())).await;
    let made = proxy.connections();
    proxy.delay(Direction::Down, Duration::from_millis(50));
    for n in 0..20 {
        timeout(Duration::from_millis(5), store.acquire(&bid(&n.to_string(), "me"))).await.ok();
    }
    round(&store, "job").await;
    assert_eq!(proxy.connections(), made);
}

/// Each acquire waits for a replica that does not answer, and holds up nobody.
#[tokio::test]
async fn acquires_that_wait_for_replicas_go_side_by_side() {
    let primary = Redis::new().start().await.unwrap();
    let store = open(&format!("{}?wait=1&wait_timeout=60s", primary.url())).await;
    let names: Vec<String> = (0..5).map(|n| format!("job {n}")).collect();
    let bids: Vec<_> = names.iter().map(|name| bid(name, "me")).collect();
    let waiting = futures_util::future::join_all(bids.iter().map(|bid| store.acquire(bid)));
    let watching = eventually("all are carried out", async || {
        names
            .iter()
            .all(|name| primary.cli(&["EXISTS", &format!("leasehold:{{{name}}}:claim")]).number() == Some(1))
    });
    tokio::select! {
        answers = waiting => panic!("no replica has them: {answers:?}"),
        () = watching => {}
    }
}

#[tokio::test]
async fn what_a_user_may_not_do_is_told_and_costs_no_connection() {
    let server = Redis::new().start().await.unwrap();
    let user = |rights: &[&str]| {
        server.cli(&["ACL", "DELUSER", "me"]);
        server.cli(&[&["ACL", "SETUSER", "me", "on", ">pw", "~*", "&*", "+@all"], rights].concat());
        format!("redis://me:pw@{}", server.addr())
    };
    // Not needed: a name, a first ping.
    let store = open(&user(&["-client", "-ping", "-select"])).await;
    for n in 0..3 {
        round(&store, &format!("job {n}")).await;
    }
    drop(store);
    // Two runs refused, one connection.
    let store = open(&user(&["-set"])).await;
    for _ in 0..2 {
        assert_eq!(refused(store.acquire(&bid("unset", "me")).await), StoreErrorKind::Denied);
    }
    eventually("one connection", async || connections(&server) == 1).await;
}

/// A sentinel that accepts and says nothing, asked first, and a time to connect beyond anybody's patience.
#[tokio::test]
async fn a_silent_sentinel_holds_up_nobody() {
    let sentinels = leasehold_testkit::redis::Sentinels::start().await.unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let first = format!("redis+sentinel://{},", silent.local_addr().unwrap());
    let url = format!("{}?timeout=60s", sentinels.url().replace("redis+sentinel://", &first));
    let store = timeout(PATIENCE, open(&url)).await.expect("the others are asked");
    let granted = won(store.acquire(&bid("job", "me")).await);
    sentinels.fail_over().await;
    timeout(PATIENCE, async {
        while !matches!(
            crate::common::renew(&store, &granted.claim).await,
            leasehold_core::Renew::Renewed { .. }
        ) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the new primary");
    let_go(&store, &granted.claim).await;
    win(&store, "next").await;
}
