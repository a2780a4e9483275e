//! Rights that are missing in the middle of a script: a server takes nothing back by itself.

use crate::common::{TTL, bid, eventually, keys, let_go, open, refused, renew, replica, win, won};
use leasehold_core::{
    Force, LeaseState, LeaseStore, Note, Parting, Predecessor, Release, Renew, Renewal, StoreErrorKind,
};
use leasehold_testkit::redis::{Flavour, Redis, RedisServer};

/// The address of a user who may do everything but `missing`.
fn user(server: &RedisServer, missing: &[&str]) -> String {
    let all = ["ACL", "SETUSER", "lh", "reset", "on", ">pw", "~*", "&*", "+@all"];
    assert_eq!(server.cli(&[&all[..], missing].concat()).text(), "OK");
    format!("redis://lh:pw@{}", server.addr())
}

/// Else a claim would stand without its fence, and the next fence might be one that was issued before.
#[tokio::test]
async fn every_right_that_is_missing_refuses_an_acquire_whole() {
    for flavour in Flavour::ALL {
        let server = Redis::new().flavour(flavour).start().await.unwrap();
        for missing in ["-get", "-hget", "-set", "-hset", "-time", "-evalsha"] {
            let store = open(&user(&server, &[missing])).await;
            let kind = refused(store.acquire(&bid("job", "me")).await);
            assert_eq!(kind, StoreErrorKind::Denied, "{flavour:?} {missing}");
            assert_eq!(keys(&server), [""; 0], "{flavour:?} {missing}");
        }
    }
}

/// A release or a force of somebody with half of the rights is done, or it is not: what is told is what is there. And
/// whatever is there, the next term has a higher fence.
#[tokio::test]
async fn every_right_that_is_missing_ends_a_claim_or_leaves_it_whole() {
    for flavour in Flavour::ALL {
        let server = Redis::new().flavour(flavour).start().await.unwrap();
        let all = open(&server.url()).await;
        for missing in ["-get", "-hget", "-del", "-hset", "-hdel", "-set", "-publish", "-evalsha"] {
            let less = open(&user(&server, &[missing])).await;
            for (heir, note, force) in
                [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]
            {
                let case = format!("{flavour:?} {missing} heir {heir} note {note} force {force}");
                let granted = win(&all, "job").await;
                let note = note.then(|| Note::new(granted.claim.fence, &b"state"[..]).unwrap());
                let parting = Parting {
                    heir: heir.then(|| (replica("heir"), std::time::Duration::from_secs(9))),
                    note: note.clone(),
                    ..Parting::default()
                };
                let ended = if force {
                    match less.force_release(&granted.claim.name, &replica("ops"), "stuck").await {
                        Force::Forced { .. } => true,
                        Force::Refused(error) if *error.kind() == StoreErrorKind::Denied => false,
                        other => panic!("{case}: {other:?}"),
                    }
                } else {
                    match less.release(&granted.claim, &parting).await {
                        Release::Released => true,
                        Release::Refused(error) if *error.kind() == StoreErrorKind::Denied => false,
                        other => panic!("{case}: {other:?}"),
                    }
                };
                let before = all.inspect(&granted.claim.name).await.unwrap();
                if ended {
                    assert!(!matches!(before.state, LeaseState::Held { .. }), "{case}: {before:?}");
                } else {
                    assert!(matches!(renew(&all, &granted.claim).await, Renew::Renewed { .. }), "{case}");
                    assert_eq!(before.predecessor.fate(), granted.predecessor.fate(), "{case}");
                    let_go(&all, &granted.claim).await;
                }
                let next = won(all.acquire(&bid("job", "heir")).await);
                assert_eq!(next.claim.fence.get(), granted.claim.fence.get() + 1, "{case}");
                assert_eq!(next.inherited, note.filter(|_| ended), "{case}");
                let_go(&all, &next.claim).await;
            }
        }
    }
}

/// Each claim of a batch has its own answer, whatever another one needs a right for.
#[tokio::test]
async fn a_witness_that_may_not_be_looked_for_costs_no_other_claim_its_renewal() {
    let server = Redis::new().start().await.unwrap();
    let (all, less) = (open(&server.url()).await, open(&user(&server, &["-pubsub"])).await);
    let mut claims = Vec::new();
    for name in ["a", "witnessed", "b"] {
        let mut bid = bid(name, "me");
        bid.crash_witness = name == "witnessed";
        claims.push(won(all.acquire(&bid).await).claim);
    }
    let renewals: Vec<Renewal> = claims.into_iter().map(|claim| Renewal { claim, ttl: TTL }).collect();
    let answers = less.renew(&renewals).await;
    assert!(matches!(answers[0], Renew::Renewed { .. }), "{answers:?}");
    assert!(
        matches!(&answers[1], Renew::Refused(error) if *error.kind() == StoreErrorKind::Denied),
        "{answers:?}"
    );
    assert!(matches!(answers[2], Renew::Renewed { .. }), "{answers:?}");
}

/// What is not published costs waiting candidates time; a lease that is refused after it was written costs everybody a
/// whole ttl.
#[tokio::test]
async fn who_may_not_publish_holds_and_releases_all_the_same() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&user(&server, &["-publish"])).await;
    let granted = win(&store, "job").await;
    let_go(&store, &granted.claim).await;
    assert_eq!(keys(&server), ["leasehold:{job}:fence"]);
    let next = won(store.acquire(&bid("job", "other")).await);
    assert!(matches!(next.predecessor, Predecessor::Released(_)));
}

/// The first request after a restart may be a look at all leases, and the only kind that a process ever makes.
#[tokio::test]
async fn a_process_that_only_lists_finds_its_server_again() {
    let mut server = Redis::new().appendonly("always").start().await.unwrap();
    let (holder, looker) = (open(&server.url()).await, open(&server.url()).await);
    win(&holder, "job").await;
    assert_eq!(looker.list("").await.unwrap().len(), 1);
    server.kill().await;
    server.restart().await.unwrap();
    eventually("it is listed", async || looker.list("").await.is_ok_and(|leases| leases.len() == 1)).await;
}

/// Nobody can say how many replicas have the claim: it is given back, and the error says why.
#[tokio::test]
async fn who_may_not_wait_for_replicas_is_granted_nothing_and_told_why() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&format!("{}?wait=1&wait_timeout=10ms", user(&server, &["-wait"]))).await;
    for _ in 0..2 {
        assert_eq!(refused(store.acquire(&bid("job", "me")).await), StoreErrorKind::Denied);
        assert_eq!(keys(&server), ["leasehold:{job}:fence"]);
    }
}
