//! Servers that cannot or may not: what they refuse, and what they throw away.

use crate::common::{TTL, bid, keys, lease, let_go, open, refused, renew, replica, win, won};
use leasehold_core::{
    Acquire, Bid, Force, LeaseStore, Note, Parting, Predecessor, Release, Renew, StoreErrorKind,
};
use leasehold_testkit::redis::{Flavour, Redis, RedisServer};

/// B37: every verb at the memory limit, on every server.
#[tokio::test]
async fn at_the_memory_limit_only_new_claims_are_refused() {
    for flavour in Flavour::ALL {
        let server = Redis::new().flavour(flavour).start().await.unwrap();
        let store = open(&server.url()).await;
        let held = bid("held", "me");
        let claim = won(store.acquire(&held).await).claim;
        let forced = win(&store, "forced").await.claim;
        let noted = win(&store, "noted").await.claim;
        server.cli(&["CONFIG", "SET", "maxmemory", "1"]);

        assert!(matches!(renew(&store, &claim).await, Renew::Renewed { .. }), "{flavour:?}");
        assert_eq!(won(store.acquire(&held).await).claim, claim, "{flavour:?}: the same attempt");
        let answer = store.acquire(&bid("held", "other")).await;
        assert!(matches!(answer, Acquire::Held(_)), "{flavour:?}: {answer:?}");
        assert_eq!(refused(store.acquire(&bid("new", "me")).await), StoreErrorKind::Full, "{flavour:?}");
        assert_eq!(store.inspect(&lease("held")).await.unwrap().claim(), Some(&claim));
        assert_eq!(store.list("").await.unwrap().len(), 3, "{flavour:?}");
        let answer = store.force_release(&lease("forced"), &replica("ops"), "to see").await;
        assert_eq!(answer, Force::Forced { fence: forced.fence, replica: forced.replica }, "{flavour:?}");
        let note = Note::new(noted.fence, vec![7; 100_000]).unwrap();
        let parting = Parting { note: Some(note.clone()), ..Parting::default() };
        assert_eq!(store.release(&noted, &parting).await, Release::Released, "{flavour:?}");
        let_go(&store, &claim).await;
        // A vacancy stays one, and says how it came about.
        assert_eq!(refused(store.acquire(&bid("forced", "me")).await), StoreErrorKind::Full, "{flavour:?}");
        let left = ["forced", "held", "noted"].map(|name| format!("leasehold:{{{name}}}:fence"));
        assert_eq!(keys(&server), left, "{flavour:?}: nothing is half done");

        server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        let next = won(store.acquire(&bid("forced", "me")).await);
        assert!(matches!(next.predecessor, Predecessor::Forced { .. }), "{flavour:?}: {next:?}");
        assert_eq!(won(store.acquire(&bid("noted", "me")).await).inherited, Some(note), "{flavour:?}");
    }
}

/// B36: the server throws a claim and its counter away, and whoever held it does not make it anew. I2 by the floor.
#[tokio::test]
async fn an_evicted_lease_is_lost_and_its_fences_go_on_rising() {
    let server = Redis::new().config("maxmemory-policy", "allkeys-random").start().await.unwrap();
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    crowd_out(&server);
    assert_eq!(keys(&server), [""; 0]);
    let answer = renew(&store, &granted.claim).await;
    let Renew::NotHolder(over) = answer else { panic!("{answer:?}") };
    assert_eq!((over.holder, over.highest), (None, None));
    assert!(matches!(store.release(&granted.claim, &Parting::default()).await, Release::NotHolder(_)));
    assert_eq!(keys(&server), [""; 0], "nothing was made anew");
    let again = Bid { floor: Some(granted.claim.fence), ..bid("job", "me") };
    assert!(won(store.acquire(&again).await).claim.fence > granted.claim.fence);
}

/// B35, B40: the reason reaches the caller from within a script, too, which Redis 6.2 tells in a sentence of its own.
#[tokio::test]
async fn a_server_that_takes_no_writes_says_why_on_every_version() {
    for flavour in Flavour::ALL {
        let server = Redis::new().flavour(flavour).start().await.unwrap();
        let store = open(&server.url()).await;
        let claim = win(&store, "job").await.claim;
        server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        for answer in [refusal(renew(&store, &claim).await), refused(store.acquire(&bid("new", "me")).await)]
        {
            let StoreErrorKind::NotWriting(said) = &answer else { panic!("{flavour:?}: {answer:?}") };
            assert!(said.contains("NOREPLICAS"), "{flavour:?}: {said}");
        }
        server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);

        let before = connection(&server);
        server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
        assert_eq!(refusal(renew(&store, &claim).await), StoreErrorKind::ReadOnly, "{flavour:?}");
        server.cli(&["REPLICAOF", "NO", "ONE"]);
        assert!(matches!(renew(&store, &claim).await, Renew::Renewed { .. }), "{flavour:?}");
        assert_ne!(connection(&server), before, "{flavour:?}: whoever is in charge was looked for again");
    }
}

fn refusal(answer: Renew) -> StoreErrorKind {
    match answer {
        Renew::Refused(error) => error.kind().clone(),
        other => panic!("it was to be refused: {other:?}"),
    }
}

/// What the server calls the connection of the store.
fn connection(server: &RedisServer) -> String {
    let clients = server.cli(&["CLIENT", "LIST"]).text();
    let ours = clients.lines().find(|client| client.contains("name=leasehold")).expect("it is connected");
    ours.split(' ').next().unwrap().to_owned()
}

/// Lowers the limit until the server has evicted everything.
fn crowd_out(server: &RedisServer) {
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    // It evicts before the next command that wants memory, which it then refuses.
    while server.cli(&["DBSIZE"]).number() != Some(0) {
        server.try_cli(&["SET", "junk", "x"]).unwrap();
    }
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
}

/// Whatever is damaged of a lease that is held: each verb says so or does not need it, and nobody writes.
#[tokio::test]
async fn a_held_lease_that_is_damaged_is_named_by_every_verb() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    let (claim_key, fence_key) = ("leasehold:{job}:claim", "leasehold:{job}:fence");
    for (damage, of_claim) in [
        (&["SET", claim_key, "", "KEEPTTL"][..], true),
        (&["SET", claim_key, "fence=0 attempt=00 replica=x", "KEEPTTL"], true),
        (&["SET", claim_key, "fence=9007199254740992 attempt=00 replica=x", "KEEPTTL"], true),
        (&["SET", claim_key, "fence=1 attempt= replica=x", "KEEPTTL"], true),
        (&["SET", claim_key, "held by \u{ff}", "KEEPTTL"], true),
        (&["RPUSH", claim_key, "a list"], true),
        (&["RPUSH", fence_key, "a list"], false),
    ] {
        server.cli(&["FLUSHALL"]);
        let claim = win(&store, "job").await.claim;
        if damage[0] == "RPUSH" {
            server.cli(&["DEL", damage[1]]);
        }
        server.cli(damage);
        if of_claim {
            server.cli(&["PEXPIRE", claim_key, "30000"]);
        }
        let dump = || [claim_key, fence_key].map(|key| server.cli(&["DUMP", key]));
        let before = dump();
        let corrupt = |kind: &StoreErrorKind| matches!(kind, StoreErrorKind::Corrupt { .. });

        assert!(corrupt(&refused(store.acquire(&bid("job", "other")).await)), "{damage:?}");
        let renewed = renew(&store, &claim).await;
        match &renewed {
            Renew::Refused(error) => assert!(of_claim && corrupt(error.kind()), "{damage:?}: {error}"),
            Renew::Renewed { remaining } => assert!(!of_claim && *remaining == TTL, "{damage:?}"),
            other => panic!("{damage:?}: {other:?}"),
        }
        match store.release(&claim, &Parting::default()).await {
            Release::Refused(error) => assert!(corrupt(error.kind()), "{damage:?}: {error}"),
            other => panic!("{damage:?}: {other:?}"),
        }
        match store.force_release(&lease("job"), &replica("ops"), "to see").await {
            Force::Refused(error) => assert!(corrupt(error.kind()), "{damage:?}: {error}"),
            other => panic!("{damage:?}: {other:?}"),
        }
        assert!(corrupt(store.inspect(&lease("job")).await.unwrap_err().kind()), "{damage:?}");
        let listed = store.list("").await.unwrap();
        assert!(matches!(&listed[..], [Err(error)] if corrupt(error.kind())), "{damage:?}: {listed:?}");
        assert_eq!(dump(), before, "{damage:?}");
    }
}
