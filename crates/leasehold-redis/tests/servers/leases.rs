//! What a lease is on a server: one step, whole claims, names as data.

use crate::common::{bid, eventually, keys, lease, let_go, open, refused, renew, win, won};
use leasehold_core::{Acquire, LeaseStore, Parting, Predecessor, Release, Renew, Renewal, StoreErrorKind};
use leasehold_testkit::redis::{Redis, RedisServer};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

/// The usual way, SET and then INCR, with a client that dies in between: an owner without a token.
#[tokio::test]
async fn two_commands_can_die_in_between() {
    let server = Redis::new().start().await.unwrap();
    let mut client = TcpStream::connect(server.addr()).unwrap();
    client.write_all(b"SET lock me NX PX 30000\r\n").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
    drop(client);
    assert_eq!(keys(&server), ["lock"], "and nobody ever gets a token for it");
}

/// Our request, cut off after each of its bytes: either nothing happened, or all of it.
#[tokio::test]
async fn a_request_that_is_cut_anywhere_is_done_whole_or_not_at_all() {
    let server = Redis::new().start().await.unwrap();
    let request = recorded(&server, "job").await;
    server.cli(&["FLUSHALL"]);
    for cut in 0..=request.len() {
        let mut client = TcpStream::connect(server.addr()).unwrap();
        client.write_all(&request[..cut]).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        // Until the server has read it all and closed.
        client.read_to_end(&mut Vec::new()).unwrap();
        let there = keys(&server);
        if cut < request.len() {
            assert_eq!(there, [""; 0], "after {cut} bytes");
        } else {
            assert_eq!(there, ["leasehold:{job}:claim", "leasehold:{job}:fence"]);
        }
    }
}

/// The bytes by which a store acquires: taken from the wire, by a server that only listens.
async fn recorded(server: &RedisServer, name: &str) -> Vec<u8> {
    // The script is known to the server already, and goes by its hash.
    let store = open(&server.url()).await;
    let granted = win(&store, name).await;
    let_go(&store, &granted.claim).await;
    let monitor = server.cli(&["SCRIPT", "EXISTS", "x"]);
    assert_eq!(monitor.text(), "0");
    let mut spy = TcpStream::connect(server.addr()).unwrap();
    spy.write_all(b"MONITOR\r\n").unwrap();
    spy.read_exact(&mut [0; 5]).unwrap();
    let mut fresh = bid(name, "me");
    fresh.attempt = leasehold_core::AttemptId::random();
    let _ = won(store.acquire(&fresh).await);
    let mut heard = String::new();
    while !heard.contains("\"EVALSHA\"") || !heard.ends_with('\n') {
        let mut some = [0; 4096];
        let n = spy.read(&mut some).unwrap();
        heard.push_str(&String::from_utf8_lossy(&some[..n]));
    }
    let line = heard.lines().find(|line| line.contains("\"EVALSHA\"")).unwrap();
    let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    request.into_bytes()
}

#[tokio::test]
async fn nothing_is_left_behind_a_release_but_the_counter() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    assert!(server.cli(&["PTTL", "leasehold:{job}:claim"]).number() > Some(0));
    let_go(&store, &granted.claim).await;
    assert_eq!(keys(&server), ["leasehold:{job}:fence"]);
    assert_eq!(server.cli(&["PTTL", "leasehold:{job}:fence"]).number(), Some(-1));
}

/// A late copy of a request whose term is over, from a connection that hung.
#[tokio::test]
async fn a_late_copy_of_an_old_request_is_granted_to_nobody() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let old = bid("job", "me");
    let granted = won(store.acquire(&old).await);
    let_go(&store, &granted.claim).await;
    assert_eq!(refused(store.acquire(&old).await), StoreErrorKind::SpentAttempt);
    let next = win(&store, "job").await;
    assert_eq!(next.claim.fence.get(), 2);
    let_go(&store, &next.claim).await;
    assert_eq!(refused(store.acquire(&old).await), StoreErrorKind::SpentAttempt, "one term later, too");
}

#[tokio::test]
async fn hostile_names_are_data() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let names = [
        "{",
        "}",
        "{}",
        "a}b{c",
        "%7B",
        "a:claim",
        "job:fence",
        "job}:claim",
        "*",
        "job?",
        "[a-z]",
        "\\",
        "\"; return 1",
        "KEYS[1]",
        "' .. redis.call('FLUSHALL') .. '",
        "ARGV",
        "naïve",
        "日本",
        "a b",
        "replica=x fence=9",
    ];
    let mut claims = Vec::new();
    for name in names {
        claims.push(won(store.acquire(&bid(name, name)).await).claim);
    }
    let listed: Vec<String> =
        store.list("").await.unwrap().into_iter().map(|record| record.unwrap().name.to_string()).collect();
    let mut expected = names.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(listed, expected);
    for claim in &claims {
        assert_eq!(claim.fence.get(), 1);
        assert!(matches!(renew(&store, claim).await, Renew::Renewed { .. }));
        let record = store.inspect(&claim.name).await.unwrap();
        assert_eq!(record.claim(), Some(claim));
        let_go(&store, claim).await;
    }
}

#[tokio::test]
async fn foreign_and_damaged_values_are_named_and_left_alone() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let (claim, fence) = ("leasehold:{job}:claim", "leasehold:{job}:fence");
    for (damage, key) in [
        (&["SET", claim, "me", "PX", "30000"][..], claim),
        (&["SET", claim, "fence=1 attempt=00 replica=x"], claim),
        (&["SET", claim, "fence=9007199254740992 attempt=00 replica=x", "PX", "30000"], claim),
        (&["LPUSH", claim, "x"], claim),
        (&["SET", fence, "12"], fence),
        (&["HSET", fence, "counter", "-1"], fence),
        (&["HSET", fence, "counter", "12abc"], fence),
        (&["HSET", fence, "counter", "9007199254740992"], fence),
        (&["HSET", fence, "counter", "9223372036854775807"], fence),
        (&["HSET", fence, "counter", "1", "term", "nonsense"], fence),
        (&["HSET", fence, "counter", "1", "term", "fence=0 since=1 attempt=00 trace= replica=x"], fence),
        (
            &[
                "HSET",
                fence,
                "counter",
                "1",
                "term",
                "fence=1 since=1 attempt=00 trace= replica=x",
                "fate",
                "eaten",
            ],
            fence,
        ),
    ] {
        server.cli(&["FLUSHALL"]);
        server.cli(damage);
        let before = server.cli(&["DUMP", key]);
        let kind = refused(store.acquire(&bid("job", "me")).await);
        assert!(
            matches!(&kind, StoreErrorKind::Corrupt { key: told, .. } if **told == *key),
            "{damage:?}: {kind:?}"
        );
        assert_eq!(server.cli(&["DUMP", key]), before, "{damage:?}");
        assert_eq!(keys(&server), [key]);
    }
}

#[tokio::test]
async fn a_batch_gives_each_claim_its_own_answer_in_few_round_trips() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let mut renewals = Vec::new();
    for n in 0..1_000 {
        let claim = win(&store, &format!("job {n}")).await.claim;
        renewals.push(Renewal { claim, ttl: Duration::from_secs(60) });
    }
    let_go(&store, &renewals[7].claim).await;
    server.cli(&["HSET", "leasehold:{job 8}:claim2", "x", "y"]);
    server.cli(&["DEL", "leasehold:{job 8}:claim"]);
    server.cli(&["LPUSH", "leasehold:{job 8}:claim", "x"]);
    renewals[9].ttl = Duration::ZERO;
    renewals.push(renewals[0].clone());
    // A server that has never seen a script is sent its text first.
    assert!(matches!(renew(&store, &renewals[0].claim).await, Renew::Renewed { .. }));
    server.cli(&["CONFIG", "RESETSTAT"]);
    let answers = store.renew(&renewals).await;
    let scripts = server.cli(&["INFO", "commandstats"]).text();
    let scripts = scripts.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap();
    assert!(scripts.split(',').next().unwrap().parse::<u32>().unwrap() <= 4, "{scripts}");
    assert_eq!(answers.len(), renewals.len());
    for (at, answer) in answers.iter().enumerate() {
        match at {
            7 => assert!(matches!(answer, Renew::NotHolder(_)), "{answer:?}"),
            8 => assert!(
                matches!(answer, Renew::Refused(e) if matches!(e.kind(), StoreErrorKind::Corrupt { .. }))
            ),
            9 => {
                assert!(matches!(answer, Renew::Refused(e) if matches!(e.kind(), StoreErrorKind::Config(_))));
            }
            _ => assert!(matches!(answer, Renew::Renewed { .. }), "{at}: {answer:?}"),
        }
    }
}

/// B36: a key of ours is gone, and whoever held it must not make it anew.
#[tokio::test]
async fn a_claim_that_was_evicted_is_lost_and_not_made_again() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    server.cli(&["DEL", "leasehold:{job}:claim"]);
    assert!(matches!(renew(&store, &granted.claim).await, Renew::NotHolder(_)));
    assert!(matches!(store.release(&granted.claim, &Parting::default()).await, Release::NotHolder(_)));
    assert_eq!(keys(&server), ["leasehold:{job}:fence"]);
    let next = win(&store, "job").await;
    assert!(matches!(next.predecessor, Predecessor::Expired(_)) && next.claim.fence > granted.claim.fence);
}

/// The server's clock goes back while a claim lives: it lives longer, and nobody takes a lease from it.
#[tokio::test]
async fn more_time_left_than_was_asked_for_is_told_as_it_is() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    server.cli(&["PEXPIRE", "leasehold:{job}:claim", "3600000"]);
    let answer = store.acquire(&bid("job", "other")).await;
    let Acquire::Held(held) = answer else { panic!("{answer:?}") };
    assert!(held.remaining > crate::common::TTL);
    assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
    assert!(store.inspect(&lease("job")).await.unwrap().remaining() <= crate::common::TTL);
}

/// Claims end by the server's own clock.
#[tokio::test]
async fn a_claim_that_nobody_renews_ends() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let mut short = bid("job", "me");
    short.ttl = Duration::from_millis(60);
    let _ = won(store.acquire(&short).await);
    eventually("it is over", async || keys(&server) == ["leasehold:{job}:fence"]).await;
    assert!(matches!(win(&store, "job").await.predecessor, Predecessor::Expired(_)));
}
