//! Data in Redis behind a fence.

use crate::common::keys;
use leasehold_core::{Fence, Stale};
use leasehold_redis::{Fenced, FencedError, FencedScript};
use leasehold_testkit::redis::{Cluster, Redis, RedisServer};
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
    assert!(matches!(data.run(fence(4), &fails, &["{d}:t"], &none).await, Err(FencedError::Redis(_))));
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
    assert!(matches!(data.set(fence(8), "{d}:s", "y").await, Err(FencedError::Redis(_))));
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
