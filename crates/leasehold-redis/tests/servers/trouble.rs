//! What servers do to their clients.

use crate::common::{PATIENCE, bid, eventually, let_go, open, refused, renew, round, win};
use leasehold_core::{Acquire, LeaseStore, Parting, Release, Renew, StoreErrorKind};
use leasehold_redis::RedisStore;
use leasehold_testkit::redis::Redis;
use std::time::Duration;
use tokio::{net::TcpListener, time::timeout};

/// B38.
#[tokio::test]
async fn scripts_that_the_server_forgets_are_sent_again_in_the_same_call() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let (done, mut is_done) = tokio::sync::oneshot::channel::<()>();
    let flushing = async {
        while is_done.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty) {
            server.cli(&["SCRIPT", "FLUSH"]);
            tokio::task::yield_now().await;
        }
    };
    let working = async {
        for n in 0..70 {
            round(&store, &format!("job {n}")).await;
        }
        let claims: Vec<_> = {
            let mut claims = Vec::new();
            for n in 0..20 {
                claims.push(win(&store, &format!("many {n}")).await.claim);
            }
            claims
        };
        let renewals: Vec<_> = claims
            .into_iter()
            .map(|claim| leasehold_core::Renewal { claim, ttl: crate::common::TTL })
            .collect();
        assert!(store.renew(&renewals).await.iter().all(|answer| matches!(answer, Renew::Renewed { .. })));
        assert_eq!(store.list("many").await.unwrap().len(), 20);
        done.send(()).unwrap();
    };
    tokio::join!(flushing, working);
}

/// B19: a port that accepts and says nothing, and one where nobody is.
#[tokio::test]
async fn a_server_that_says_nothing_is_no_server() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        closed.local_addr().unwrap()
    };
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for address in [silent.local_addr().unwrap(), nobody] {
        let url = format!("redis://{address}?timeout=200ms");
        let error = timeout(PATIENCE, RedisStore::open(&url)).await.expect("an end").unwrap_err();
        assert!(matches!(error.kind(), StoreErrorKind::Unreachable | StoreErrorKind::TimedOut(_)), "{error}");
    }
    eventually("no task is left", async || tasks() <= before).await;
}

/// B20: the server closes what is idle.
#[tokio::test]
async fn a_connection_that_the_server_closed_costs_no_renewal() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    for _ in 0..5 {
        server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        let answer = renew(&store, &granted.claim).await;
        assert!(matches!(answer, Renew::Renewed { .. }), "{answer:?}");
    }
    let_go(&store, &granted.claim).await;
}

/// B33, and B20 with a restart.
#[tokio::test]
async fn a_server_that_comes_back_with_its_data_is_found_again() {
    let mut server = Redis::new().appendonly("always").start().await.unwrap();
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    server.kill().await;
    let answer = renew(&store, &granted.claim).await;
    assert!(matches!(answer, Renew::Refused(_) | Renew::Unknown(_)), "{answer:?}");
    server.restart().await.unwrap();
    eventually("the claim is renewed", async || {
        matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. })
    })
    .await;
    let_go(&store, &granted.claim).await;
}

#[tokio::test]
async fn a_frozen_server_leaves_the_answer_unknown_and_is_found_again_when_it_thaws() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&format!("{}?response_timeout=200ms&timeout=200ms", server.url())).await;
    let granted = win(&store, "job").await;
    server.pause();
    let wanted = bid("other", "me");
    let answer = timeout(PATIENCE, store.acquire(&wanted)).await.expect("an end");
    assert!(matches!(answer, Acquire::Unknown(_)), "{answer:?}");
    // The way is down: whoever asks now is told soon.
    let answer = timeout(PATIENCE, renew(&store, &granted.claim)).await.expect("an end");
    assert!(matches!(answer, Renew::Refused(_) | Renew::Unknown(_)), "{answer:?}");
    server.resume();
    // The same attempt gets the same answer, whatever became of the first request (rule 4).
    eventually("the attempt is settled", async || {
        matches!(store.acquire(&wanted).await, Acquire::Granted(granted) if granted.claim.fence.get() == 1)
    })
    .await;
    assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
}

#[tokio::test]
async fn a_dropped_call_leaves_the_connection_usable() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    server.cli(&["CLIENT", "PAUSE", "100", "ALL"]);
    for n in 0..20 {
        timeout(Duration::from_millis(1), store.acquire(&bid(&n.to_string(), "me"))).await.ok();
    }
    round(&store, "job").await;
}

/// B35: the server turns into a replica, and the connection stays up.
#[tokio::test]
async fn a_demoted_server_is_refused_and_asked_for_again() {
    let (server, other) = (Redis::new().start().await.unwrap(), Redis::new().start().await.unwrap());
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    server.cli(&["REPLICAOF", "127.0.0.1", &other.addr().port().to_string()]);
    let answer = renew(&store, &granted.claim).await;
    let Renew::Refused(error) = answer else { panic!("{answer:?}") };
    assert_eq!(*error.kind(), StoreErrorKind::ReadOnly);
    server.cli(&["REPLICAOF", "NO", "ONE"]);
    round(&store, "next").await;
}

/// B37: what holders need works at the memory limit, and nothing is left half done.
#[tokio::test]
async fn a_full_server_still_renews_and_releases() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let (held, handed) = (win(&store, "held").await.claim, win(&store, "handed").await.claim);
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(matches!(renew(&store, &held).await, Renew::Renewed { .. }));
    assert_eq!(refused(store.acquire(&bid("new", "me")).await), StoreErrorKind::Full);
    let parting = Parting {
        heir: Some((crate::common::replica("heir"), Duration::from_secs(20))),
        note: Some(leasehold_core::Note::new(handed.fence, &b"state"[..]).unwrap()),
        ..Parting::default()
    };
    assert_eq!(store.release(&handed, &parting).await, Release::Released);
    let_go(&store, &held).await;
    let left = ["held", "handed"].map(|name| format!("leasehold:{{{name}}}:fence"));
    let mut expected = vec![left[1].clone(), "leasehold:{handed}:claim".to_owned(), left[0].clone()];
    expected.sort();
    assert_eq!(crate::common::keys(&server), expected, "nothing of the refused one");
    assert!(server.cli(&["PTTL", "leasehold:{handed}:claim"]).number() > Some(0));
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let heir = crate::common::won(store.acquire(&bid("handed", "heir")).await);
    assert_eq!(heir.inherited.unwrap().bytes(), b"state");
}

/// B40: too few replicas, and a snapshot that failed.
#[tokio::test]
async fn a_server_that_takes_no_writes_says_why() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let answers = [
        format!("{:?}", store.acquire(&bid("new", "me")).await),
        format!("{:?}", renew(&store, &granted.claim).await),
        format!("{:?}", store.release(&granted.claim, &Parting::default()).await),
    ];
    for answer in answers {
        assert!(answer.starts_with("Refused") && answer.contains("NOREPLICAS"), "{answer}");
    }
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    let_go(&store, &granted.claim).await;
}

#[tokio::test]
async fn a_password_that_is_changed_is_told_as_denied() {
    let server = Redis::new().start().await.unwrap();
    server.cli(&["ACL", "SETUSER", "me", "on", ">old", "~*", "&*", "+@all"]);
    let store = open(&format!("redis://me:old@{}", server.addr())).await;
    let granted = win(&store, "job").await;
    server.cli(&["ACL", "SETUSER", "me", "resetpass", ">new"]);
    server.cli(&["CLIENT", "KILL", "USER", "me"]);
    eventually("denied", async || match renew(&store, &granted.claim).await {
        Renew::Refused(error) => *error.kind() == StoreErrorKind::Denied,
        _ => false,
    })
    .await;
    server.cli(&["ACL", "SETUSER", "me", "resetpass", ">old"]);
    eventually("let in again", async || matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }))
        .await;
}

/// I11.
#[tokio::test]
async fn a_store_that_is_dropped_leaves_no_connection_and_no_task() {
    let server = Redis::new().start().await.unwrap();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let store = open(&server.url()).await;
    let mut watched = bid("job", "me");
    watched.crash_witness = true;
    let _ = crate::common::won(store.acquire(&watched).await);
    let watch = store.watch(leasehold_core::Scope::All).await.unwrap();
    drop((store, watch));
    eventually("nothing is left", async || {
        let clients = server.cli(&["CLIENT", "LIST"]).text();
        clients.lines().count() == 1 && tasks() <= before
    })
    .await;
}

/// The herd: many callers, one attempt to connect at a time.
#[tokio::test]
async fn callers_who_lost_their_server_do_not_storm_it() {
    let mut server = Redis::new().start().await.unwrap();
    let store = std::sync::Arc::new(open(&format!("{}?timeout=200ms", server.url())).await);
    server.kill().await;
    let callers = (0..200).map(|n| {
        let store = store.clone();
        async move { store.acquire(&bid(&format!("job {n}"), "me")).await }
    });
    let answers = futures_util::future::join_all(callers).await;
    assert!(answers.iter().all(|answer| !matches!(answer, Acquire::Granted(_))));
    server.restart().await.unwrap();
    eventually("it is found again", async || {
        matches!(store.acquire(&bid("after", "me")).await, Acquire::Granted(_))
    })
    .await;
    let came = server.cli(&["INFO", "stats"]).text();
    let came = came.lines().find_map(|line| line.trim().strip_prefix("total_connections_received:")).unwrap();
    assert!(came.parse::<u32>().unwrap() < 10, "{came} connections for 200 callers");
}
