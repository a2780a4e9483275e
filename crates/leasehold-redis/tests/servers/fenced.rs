//! Data in Redis behind a fence.

use crate::common::keys;
use leasehold_core::{Fence, Stale};
use leasehold_redis::{Fenced, FencedError, FencedScript};
use leasehold_testkit::{
    faults::Proxy,
    redis::{Cluster, Flavour, Redis, RedisServer},
};
use redis::{Value, aio::MultiplexedConnection};
use std::time::Duration;

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

async fn fenced(server: &RedisServer) -> Fenced<MultiplexedConnection> {
    let client = redis::Client::open(server.url()).unwrap();
    Fenced::new(client.get_multiplexed_async_connection().await.unwrap(), "{d}:fence")
}

fn stale(error: &FencedError) -> Stale {
    match error {
        FencedError::Stale(stale) => *stale,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_kind_of_write_is_refused_under_a_lower_fence_and_leaves_nothing() {
    let server = Redis::new().start().await.unwrap();
    let data = fenced(&server).await;
    let (old, new) = (fence(9), fence(10));
    data.set(new, "{d}:s", "new").await.unwrap();
    data.set_for(new, "{d}:e", "new", Duration::from_secs(60)).await.unwrap();
    data.hash_set(new, "{d}:h", "field", "new").await.unwrap();
    data.list_push(new, "{d}:l", "new").await.unwrap();
    let id = data.stream_add(new, "{d}:x", &[("field", "new")]).await.unwrap();
    assert!(id.contains('-'));
    let dump = || {
        let each = keys(&server).into_iter().map(|key| (server.cli(&["DUMP", &key]), key));
        each.collect::<Vec<_>>()
    };
    let before = dump();
    assert_eq!(before.len(), 6);
    let refused = [
        data.set(old, "{d}:s", "old").await.unwrap_err(),
        data.set_for(old, "{d}:e", "old", Duration::from_secs(1)).await.unwrap_err(),
        data.hash_set(old, "{d}:h", "field", "old").await.unwrap_err(),
        data.hash_delete(old, "{d}:h", "field").await.unwrap_err(),
        data.list_push(old, "{d}:l", "old").await.unwrap_err(),
        data.stream_add(old, "{d}:x", &[("field", "old")]).await.unwrap_err(),
        data.delete(old, "{d}:s").await.unwrap_err(),
    ];
    for error in &refused {
        assert_eq!(stale(error), Stale { presented: old, highest: new });
    }
    assert_eq!(dump(), before);
    assert!(server.cli(&["PTTL", "{d}:e"]).number() > Some(1_000));
    // The same token again is its holder at work.
    assert!(data.hash_delete(new, "{d}:h", "field").await.unwrap());
    assert!(data.delete(new, "{d}:s").await.unwrap() && !data.delete(new, "{d}:s").await.unwrap());
}

#[tokio::test]
async fn a_script_of_ones_own_sees_its_own_keys_and_arguments() {
    let server = Redis::new().start().await.unwrap();
    let data = fenced(&server).await;
    let add =
        FencedScript::new("return redis.call('INCRBY', KEYS[1], ARGV[1]) -- the last line may be a comment");
    let none: [&str; 0] = [];
    assert_eq!(data.run(fence(2), &add, &["{d}:n"], &[5]).await.unwrap(), Value::Int(5));
    server.cli(&["SCRIPT", "FLUSH"]);
    assert_eq!(data.run(fence(2), &add, &["{d}:n"], &[5]).await.unwrap(), Value::Int(10));
    let error = data.run(fence(1), &add, &["{d}:n"], &[5]).await.unwrap_err();
    assert_eq!(stale(&error).highest, fence(2));
    assert_eq!(server.cli(&["GET", "{d}:n"]).text(), "10");
    let nothing = FencedScript::new("");
    assert_eq!(data.run(fence(3), &nothing, &none, &none).await.unwrap(), Value::Nil);
    // One that fails has raised the mark: no older write may follow what it may have written.
    let fails =
        FencedScript::new("redis.call('SET', KEYS[1], 'half'); return redis.call('LPUSH', KEYS[1], 'x')");
    assert!(matches!(
        data.run(fence(4), &fails, &["{d}:t"], &none).await,
        Err(FencedError::WrongType { .. })
    ));
    assert_eq!(server.cli(&["GET", "{d}:fence"]).text(), "4");
}

/// I1, with writers in any order: what is accepted never goes back.
#[tokio::test]
async fn accepted_fences_never_go_down_however_many_write() {
    let server = Redis::new().start().await.unwrap();
    let data = fenced(&server).await;
    let mut writers = Vec::new();
    for n in 0..400_u64 {
        let data = data.clone();
        // Up and down again, and many at a time.
        let token = fence(1 + (n * 7919) % 200);
        writers.push(tokio::spawn(async move { data.list_push(token, "{d}:l", token.get()).await }));
    }
    let mut refused = 0;
    for writer in writers {
        refused += usize::from(writer.await.unwrap().is_err());
    }
    let journal = server.cli(&["LRANGE", "{d}:l", "0", "-1"]).text();
    let accepted: Vec<u64> = journal.lines().map(|line| line.parse().unwrap()).collect();
    assert!(accepted.is_sorted(), "{accepted:?}");
    assert!(refused > 0 && accepted.len() + refused == 400);
}

#[tokio::test]
async fn a_damaged_mark_is_named_and_left_alone_and_a_jump_is_bounded() {
    let server = Redis::new().start().await.unwrap();
    let data = fenced(&server).await;
    for value in ["0", "-1", "12x", "9007199254740992", ""] {
        server.cli(&["SET", "{d}:fence", value]);
        let error = data.set(fence(5), "{d}:s", "x").await.unwrap_err();
        assert!(
            matches!(&error, FencedError::Damaged { mark, .. } if mark == "{d}:fence"),
            "{value}: {error}"
        );
        assert_eq!(server.cli(&["GET", "{d}:fence"]).text(), value);
    }
    server.cli(&["DEL", "{d}:fence"]);
    server.cli(&["LPUSH", "{d}:fence", "x"]);
    assert!(matches!(data.set(fence(5), "{d}:s", "x").await, Err(FencedError::Damaged { .. })));
    server.cli(&["FLUSHALL"]);
    let careful = data.with_max_jump(10);
    careful.set(fence(100), "{d}:s", "x").await.unwrap();
    careful.set(fence(110), "{d}:s", "x").await.unwrap();
    let error = careful.set(Fence::MAX, "{d}:s", "x").await.unwrap_err();
    assert!(matches!(error, FencedError::TooFar { max_jump: 10, .. }), "{error}");
    assert_eq!(server.cli(&["GET", "{d}:fence"]).text(), "110");
}

#[tokio::test]
async fn a_mark_survives_a_restart_and_a_full_server_refuses_the_whole() {
    let mut server = Redis::new().appendonly("always").start().await.unwrap();
    let data = fenced(&server).await;
    data.set(fence(7), "{d}:s", "x").await.unwrap();
    server.kill().await;
    server.restart().await.unwrap();
    let data = fenced(&server).await;
    assert_eq!(stale(&data.set(fence(6), "{d}:s", "y").await.unwrap_err()).highest, fence(7));
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(matches!(data.set(fence(8), "{d}:s", "y").await, Err(FencedError::Full { .. })));
    assert_eq!(
        (server.cli(&["GET", "{d}:fence"]).text(), server.cli(&["GET", "{d}:s"]).text()),
        ("7".into(), "x".into())
    );
}

#[tokio::test]
async fn in_a_cluster_mark_and_data_share_a_slot_or_the_error_says_how() {
    let cluster = Cluster::start().await.unwrap();
    let nodes: Vec<String> = cluster.nodes.iter().map(RedisServer::url).collect();
    let connection = redis::cluster::ClusterClient::new(nodes).unwrap().get_async_connection().await.unwrap();
    let data = Fenced::new(connection, "{d}:fence");
    data.set(fence(1), "{d}:s", "x").await.unwrap();
    let error = data.set(fence(1), "elsewhere", "x").await.unwrap_err();
    assert!(error.to_string().contains("one hash tag"), "{error}");
}

/// Every version of the servers has its own words for what a script may not do.
#[tokio::test]
async fn each_reason_for_a_refusal_is_told_by_its_name_on_every_version() {
    let none: [&str; 0] = [];
    for flavour in Flavour::ALL {
        let server = Redis::new().flavour(flavour).start().await.unwrap();
        let data = fenced(&server).await;
        data.set(fence(1), "{d}:s", "x").await.unwrap();
        let named = |error: FencedError| match error {
            FencedError::WrongType { .. } => "wrong type",
            FencedError::Denied { .. } => "denied",
            FencedError::Full { .. } => "full",
            FencedError::NotWriting { .. } => "not writing",
            FencedError::Script { .. } => "script",
            FencedError::Damaged { .. } => "damaged",
            other => panic!("{flavour:?}: {other}"),
        };
        // The user's key, and ours.
        assert_eq!(named(data.list_push(fence(1), "{d}:s", "x").await.unwrap_err()), "wrong type");
        server.cli(&["LPUSH", "{e}:fence", "x"]);
        let client = redis::Client::open(server.url()).unwrap();
        let other = Fenced::new(client.get_multiplexed_async_connection().await.unwrap(), "{e}:fence");
        assert_eq!(named(other.set(fence(1), "{e}:s", "x").await.unwrap_err()), "damaged");
        // Rights to commands and to keys, of the mark and of the data. A new fence is one that must be kept.
        for (at, missing) in ["-get", "-set", "-evalsha", "-hset"].into_iter().enumerate() {
            server.cli(&["ACL", "SETUSER", "default", missing]);
            let denied = data.hash_set(fence(2 + at as u64), "{d}:h", "field", "x").await.unwrap_err();
            assert_eq!(named(denied), "denied", "{flavour:?} {missing}");
            server.cli(&["ACL", "SETUSER", "default", "+@all"]);
            assert_eq!(server.cli(&["EXISTS", "{d}:h"]).number(), Some(0), "{flavour:?} {missing}");
        }
        for keys in ["~{d}:fence", "~{d}:s"] {
            server.cli(&["ACL", "SETUSER", "default", "resetkeys", keys]);
            assert_eq!(named(data.set(fence(9), "{d}:s", "x").await.unwrap_err()), "denied", "{keys}");
            server.cli(&["ACL", "SETUSER", "default", "~*"]);
        }
        // What the user's own script does wrong.
        for body in [
            "error('mine')",
            "return redis.error_reply('MINE mine')",
            "return nil + 1",
            "return redis.call('NOSUCH')",
            "no lua",
        ] {
            let error = data.run(fence(9), &FencedScript::new(body), &none, &none).await.unwrap_err();
            assert!(body != "error('mine')" || error.to_string().contains("mine"), "{error}");
            assert_eq!(named(error), "script", "{flavour:?} {body}");
        }
        server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        assert_eq!(named(data.set(fence(10), "{d}:s", "y").await.unwrap_err()), "not writing");
        server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        // With a new fence the mark is refused, with the one of before the write.
        server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        for number in [10, 9] {
            assert_eq!(named(data.set(fence(number), "{d}:s", "y").await.unwrap_err()), "full");
        }
        server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
        assert_eq!(named(data.set(fence(10), "{d}:s", "y").await.unwrap_err()), "not writing");
        server.cli(&["REPLICAOF", "NO", "ONE"]);
        assert_eq!(server.cli(&["GET", "{d}:s"]).text(), "x", "{flavour:?}: nothing was written");
    }
}

/// As `docs/semantics/redis.md` gives them.
#[tokio::test]
async fn a_user_with_the_rights_that_are_named_writes_on_every_version() {
    for flavour in Flavour::ALL {
        let server = Redis::new().flavour(flavour).start().await.unwrap();
        let rights = "on >pw resetkeys ~{d}:* -@all +eval +evalsha +get +set +hset";
        let set: Vec<&str> = ["ACL", "SETUSER", "writer"].into_iter().chain(rights.split(' ')).collect();
        server.cli(&set);
        let client = redis::Client::open(format!("redis://writer:pw@{}", server.addr())).unwrap();
        let data = Fenced::new(client.get_multiplexed_async_connection().await.unwrap(), "{d}:fence");
        data.hash_set(fence(2), "{d}:h", "field", "x").await.unwrap();
        assert_eq!(
            stale(&data.set(fence(1), "{d}:s", "x").await.unwrap_err()).highest,
            fence(2),
            "{flavour:?}"
        );
    }
}

/// I7: whatever the answer would have been, nobody knows it.
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_unknown_and_may_be_made_again() {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let client = redis::Client::open(format!("redis://{}", proxy.addr())).unwrap();
    let data = Fenced::new(client.get_multiplexed_async_connection().await.unwrap(), "{d}:fence");
    data.list_push(fence(1), "{d}:l", "one").await.unwrap();
    proxy.lose_reply(1);
    let error = data.list_push(fence(1), "{d}:l", "two").await.unwrap_err();
    assert!(matches!(error, FencedError::Unknown(_)), "{error}");
    assert_eq!(server.cli(&["LRANGE", "{d}:l", "0", "-1"]).text(), "one\ntwo", "it was made, here");
    let again = Fenced::new(client.get_multiplexed_async_connection().await.unwrap(), "{d}:fence");
    again.list_push(fence(1), "{d}:l", "three").await.unwrap();
}
