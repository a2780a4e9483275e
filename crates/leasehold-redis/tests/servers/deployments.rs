//! Every way to reach a server.

use crate::common::{bid, eventually, let_go, open, round, win};
use leasehold_core::{Acquire, LeaseStore, Renew, Roster, StoreErrorKind};
use leasehold_redis::{Config, RedisStore};
use leasehold_testkit::redis::{Cluster, Redis, Sentinels};
use tokio::io::AsyncWriteExt;

/// As `docs/semantics/redis.md` gives it.
pub(crate) const ACL: &str = "resetkeys ~leasehold:* resetchannels &leasehold:* -@all +eval +evalsha +get +set +pttl +pexpire \
                   +hget +hset +hmget +hdel +hgetall +zadd +zrangebyscore +zrem +del +rpush +lrange +ltrim +publish +subscribe +unsubscribe \
                   +psubscribe +punsubscribe +pubsub|numsub +time +scan +ping +wait +select +hello +client|setname";

/// What a Cluster needs besides.
pub(crate) const CLUSTER_ACL: &str = "+cluster|slots +cluster|nodes +asking";

#[tokio::test]
async fn databases_are_apart() {
    let server = Redis::new().start().await.unwrap();
    let (zero, three) = (open(&server.url()).await, open(&format!("{}/3", server.url())).await);
    win(&zero, "job").await;
    win(&three, "job").await;
    assert_eq!((zero.list("").await.unwrap().len(), three.list("").await.unwrap().len()), (1, 1));
}

#[tokio::test]
async fn prefixes_are_apart_whatever_they_hold() {
    let server = Redis::new().start().await.unwrap();
    let plain = open(&server.url()).await;
    let odd = open(&format!("{}?prefix=app%5B*%5D%3F:", server.url())).await;
    win(&plain, "job").await;
    assert!(odd.list("").await.unwrap().is_empty());
    win(&odd, "job").await;
    assert_eq!(odd.list("").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_socket_serves_as_well_as_a_port() {
    let server = Redis::new().socket().start().await.unwrap();
    let store = open(&format!("redis+unix://{}", server.socket().unwrap().display())).await;
    round(&store, "job").await;
}

#[tokio::test]
async fn a_server_with_tls_is_known_by_its_authority_and_knows_us_by_our_certificate() {
    let server = Redis::new().tls().start().await.unwrap();
    let url = server.url();
    round(&open(&url).await, "job").await;
    let by_resp3 = format!("{url}&protocol=resp3");
    round(&open(&by_resp3).await, "job").await;
    let (stranger, _) = url.split_once('?').unwrap();
    let error = RedisStore::open(stranger).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let nobody = format!("{stranger}?ca={}", server.certificates().ca.display());
    RedisStore::open(&nobody).await.expect_err("a client without a certificate");
}

#[tokio::test]
async fn a_password_is_asked_for_and_never_shown() {
    let server = Redis::new().password("canary").start().await.unwrap();
    round(&open(&server.url()).await, "job").await;
    let file = server.dir().join("password");
    std::fs::write(&file, "canary\n").unwrap();
    round(&open(&format!("redis://{}?password_file={}", server.addr(), file.display())).await, "job").await;
    for address in [format!("redis://{}", server.addr()), format!("redis://:canarx@{}", server.addr())] {
        let error = RedisStore::open(&address).await.unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Denied);
        assert!(!format!("{error} {error:?}").contains("canar"), "{error:?}");
    }
    assert!(!format!("{:?}", Config::parse(&server.url())).contains("canary"));
}

#[tokio::test]
async fn a_user_needs_no_more_than_the_documented_rights() {
    let server = Redis::new().start().await.unwrap();
    let mut words = vec!["ACL", "SETUSER", "lh", "on", ">pw"];
    words.extend(ACL.split_whitespace());
    server.cli(&words);
    let store = open(&format!("redis://lh:pw@{}", server.addr())).await;
    round(&store, "job").await;
    let mut witnessed = bid("seen", "me");
    witnessed.crash_witness = true;
    let granted = leasehold_testkit::conformance::won(store.acquire(&witnessed).await);
    let (here, there) =
        (store.watch(leasehold_core::Scope::All).await, store.candidates(&granted.claim.name).await);
    assert!(here.is_ok() && there.is_ok(), "{here:?} {there:?}");
    assert_eq!(store.list("").await.unwrap().len(), 2);
    let told = store.diagnose().await.unwrap();
    assert!(told.iter().any(|finding| finding.code == "not-allowed-to-look"), "{told:?}");
    // And what is not theirs is not ours.
    let elsewhere =
        RedisStore::open(&format!("redis://lh:pw@{}?prefix=other:", server.addr())).await.unwrap();
    match elsewhere.acquire(&bid("job", "me")).await {
        Acquire::Refused(error) => {
            assert_eq!(*error.kind(), StoreErrorKind::Denied);
            assert!(error.to_string().contains("permission"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_user_of_a_cluster_needs_three_rights_more() {
    let cluster = Cluster::start().await.unwrap();
    for node in &cluster.nodes {
        let mut words = vec!["ACL", "SETUSER", "lh", "on", ">pw"];
        words.extend(ACL.split_whitespace());
        words.extend(CLUSTER_ACL.split_whitespace());
        node.cli(&words);
    }
    let store = open(&cluster.url().replace("://", "://lh:pw@")).await;
    for n in 0..8 {
        round(&store, &format!("job {n}")).await;
    }
    assert_eq!(store.list("job").await.unwrap().len(), 8);
}

#[tokio::test]
async fn the_doctor_names_what_endangers_leases() {
    let server = Redis::new()
        .config("maxmemory-policy", "allkeys-lru")
        .config("maxmemory", "100mb")
        .start()
        .await
        .unwrap();
    let store = open(&server.url()).await;
    let codes = async || {
        let found = store.diagnose().await.unwrap();
        found.into_iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    assert_eq!(codes().await, ["eviction", "no-persistence"]);
    for (name, value) in
        [("maxmemory-policy", "noeviction"), ("appendonly", "yes"), ("appendfsync", "always")]
    {
        server.cli(&["CONFIG", "SET", name, value]);
    }
    assert_eq!(codes().await, [""; 0]);
}

#[tokio::test]
async fn the_rights_in_the_book_are_the_ones_that_are_tested() {
    let page = include_str!("../../../../docs/semantics/redis.md");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert!(words(page).contains(&words(ACL)));
    assert!(words(page).contains(&format!("`{CLUSTER_ACL}`")));
}

/// B34, B35: the primary changes, and the connection to the old one stays up.
#[tokio::test]
async fn sentinels_lead_to_the_primary_and_to_the_next_one() {
    let sentinels = Sentinels::start().await.unwrap();
    let store = open(&sentinels.url()).await;
    let other = open(&sentinels.url()).await;
    let granted = win(&store, "job").await;
    sentinels.fail_over().await;
    eventually("the claim is renewed by the new primary", async || {
        matches!(crate::common::renew(&store, &granted.claim).await, Renew::Renewed { .. })
    })
    .await;
    eventually("others find the new primary, too", async || {
        matches!(other.acquire(&bid("job", "other")).await, Acquire::Held(_))
    })
    .await;
    let_go(&store, &granted.claim).await;
}

#[tokio::test]
async fn sentinels_lead_away_from_a_primary_that_died() {
    let mut sentinels = Sentinels::start().await.unwrap();
    let store = open(&sentinels.url()).await;
    let first = win(&store, "job").await;
    let_go(&store, &first.claim).await;
    let before = sentinels.primary();
    sentinels.servers[before.unwrap()].kill().await;
    sentinels.until_another_leads(before).await;
    eventually("a lease from the new primary", async || {
        let mut again = bid("job", "me");
        again.floor = Some(first.claim.fence);
        match store.acquire(&again).await {
            // Whatever the replica had not got of the old counter, the floor repairs (I2).
            Acquire::Granted(granted) => granted.claim.fence > first.claim.fence,
            _ => false,
        }
    })
    .await;
}

#[tokio::test]
async fn a_cluster_keeps_leases_on_all_its_nodes_and_follows_a_slot_that_moves() {
    let cluster = Cluster::start().await.unwrap();
    let store = open(&cluster.url()).await;
    let names: Vec<String> = (0..30).map(|n| format!("job {{{n}}}")).collect();
    let mut claims = Vec::new();
    for name in &names {
        claims.push(win(&store, name).await.claim);
    }
    for node in &cluster.nodes {
        assert!(node.cli(&["DBSIZE"]).number() > Some(0), "each has some");
    }
    assert_eq!(store.list("").await.unwrap().len(), names.len());
    let slot = cluster.slot("leasehold:{job %7B7%7D}:claim");
    let from = cluster.owner(slot);
    cluster.move_slot(slot, from, (from + 1) % 3);
    // All together: those on all nodes, and the one that moved.
    let renewals: Vec<_> = claims
        .iter()
        .map(|claim| leasehold_core::Renewal { claim: claim.clone(), ttl: crate::common::TTL })
        .collect();
    for answer in store.renew(&renewals).await {
        assert!(matches!(answer, Renew::Renewed { .. }), "{answer:?}");
    }
    for claim in &claims {
        let_go(&store, claim).await;
    }
}

#[tokio::test]
async fn a_cluster_is_reached_by_tls() {
    let cluster = Cluster::start_with_tls().await.unwrap();
    let url = cluster.url();
    let store = open(&url).await;
    for n in 0..12 {
        round(&store, &format!("job {n}")).await;
    }
    for node in &cluster.nodes {
        assert!(node.cli(&["DBSIZE"]).number() > Some(0), "each has some");
    }
    let mut watched = bid("seen", "me");
    watched.crash_witness = true;
    let _ = leasehold_testkit::conformance::won(store.acquire(&watched).await);
    let (stranger, _) = url.split_once('?').unwrap();
    let error = RedisStore::open(stranger).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn sentinels_lead_to_the_primary_by_tls() {
    let sentinels = Sentinels::start_with_tls().await.unwrap();
    let url = sentinels.url();
    let store = open(&url).await;
    let granted = win(&store, "job").await;
    sentinels.fail_over().await;
    eventually("the claim is renewed by the new primary", async || {
        matches!(crate::common::renew(&store, &granted.claim).await, Renew::Renewed { .. })
    })
    .await;
    let_go(&store, &granted.claim).await;
    let (stranger, _) = url.split_once('?').unwrap();
    let error = RedisStore::open(stranger).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_node_of_a_cluster_by_itself_says_what_to_write_instead() {
    let cluster = Cluster::start().await.unwrap();
    let store = open(&cluster.nodes[0].url()).await;
    let mut told = Vec::new();
    for n in 0..20 {
        if let Acquire::Refused(error) = store.acquire(&bid(&n.to_string(), "me")).await {
            told.push(error.to_string());
        }
    }
    assert!(!told.is_empty() && told.iter().all(|error| error.contains("redis+cluster://")), "{told:?}");
    // A part of the leases is not all of them.
    let error = store.list("").await.unwrap_err();
    assert!(error.to_string().contains("redis+cluster://"), "{error}");
}

/// Whoever reads the error knows what to change in the address.
#[tokio::test]
async fn an_address_of_something_else_says_so_in_words() {
    let server = Redis::new().start().await.unwrap();
    let error = RedisStore::open(&format!("rediss://{}?timeout=200ms", server.addr())).await.unwrap_err();
    assert!(error.to_string().contains("begins with redis, not rediss"), "{error}");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.ok();
        }
    });
    for address in
        [format!("redis://{addr}"), format!("redis+cluster://{addr}"), format!("redis+sentinel://{addr}/m")]
    {
        let error = RedisStore::open(&address).await.unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Unreachable, "{error}");
        let text = error.to_string();
        assert!(text.ends_with("what answers there does not speak the protocol of Redis"), "{text}");
    }
}
