//! What fails for one must not fail for others.

use super::{ears, next, until};
use crate::common::{bid, eventually, lease, let_go, open, replica, win, won};
use leasehold_core::{
    Bid, Envelope, LeaseState, LeaseStore, Mail, Scope, Sighting, StoreErrorKind, TraceContext,
};
use leasehold_testkit::redis::Redis;

fn letter() -> Envelope {
    Envelope {
        from: replica("other"),
        lease: lease("job"),
        kind: "hello".into(),
        body: (*b"body").into(),
        trace: TraceContext::NONE,
    }
}

#[tokio::test]
async fn an_inbox_that_cannot_be_read_costs_nobody_his_watch_or_his_witness() {
    let server = Redis::new().start().await.unwrap();
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    let _held = won(store.acquire(&Bid { crash_witness: true, ..bid("seen", "me") }).await);
    let mut watch = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    let mut good = store.inbox(&replica("good")).await.unwrap();
    let mut bad = store.inbox(&replica("bad")).await.unwrap();
    for broken in ["bad", "worse"] {
        server.cli(&["SET", &format!("leasehold:{{{broken}}}:mail"), "of another kind"]);
    }
    let error = store.inbox(&replica("worse")).await.unwrap_err();
    assert!(matches!(error.kind(), StoreErrorKind::Corrupt { .. }), "{error}");
    let before = ears(&server);
    for _ in 0..5 {
        server.cli(&["PUBLISH", "leasehold:{bad}:mail", ""]);
        let granted = win(&other, "job").await;
        let Sighting::State(seen) = next(&mut watch).await else { panic!("no trouble of ours") };
        assert_eq!(seen.claim(), Some(&granted.claim));
        let_go(&other, &granted.claim).await;
        let Sighting::State(seen) = next(&mut watch).await else { panic!("no trouble of ours") };
        assert_eq!(seen.state, LeaseState::Vacant);
        other.post(&replica("good"), &letter()).await.unwrap();
        assert_eq!(good.next().await, Some(letter()));
    }
    assert_eq!(ears(&server), before, "still the same connection");
    assert_eq!(
        server.cli(&["GET", "leasehold:{bad}:mail"]).text(),
        "of another kind",
        "it was left as it is"
    );
    // Once repaired, it is an inbox as any other.
    server.cli(&["DEL", "leasehold:{bad}:mail"]);
    other.post(&replica("bad"), &letter()).await.unwrap();
    assert_eq!(bad.next().await, Some(letter()));
}

#[tokio::test]
async fn a_watch_that_is_refused_costs_the_others_nothing() {
    let server = Redis::new().start().await.unwrap();
    let other = open(&server.url()).await;
    let rights =
        ["ACL", "SETUSER", "one", "on", ">secret", "~*", "+@all", "resetchannels", "&leasehold:{job}:*"];
    server.cli(&rights);
    let store = open(&format!("redis://one:secret@{}", server.addr())).await;
    let mut watch = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    let before = ears(&server);
    for _ in 0..3 {
        for denied in [Scope::Names(vec![lease("other")]), Scope::All] {
            let error = store.watch(denied).await.unwrap_err();
            assert_eq!(*error.kind(), StoreErrorKind::Denied, "{error}");
        }
        let mut again = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
        let granted = win(&other, "job").await;
        until(&mut watch, |record| record.claim() == Some(&granted.claim)).await;
        until(&mut again, |record| record.claim() == Some(&granted.claim)).await;
        let_go(&other, &granted.claim).await;
    }
    assert_eq!(ears(&server), before, "still the same connection");
}

/// It is told once, whatever else happens, and again when it can be read.
#[tokio::test]
async fn a_damaged_lease_is_told_once_and_shown_when_it_is_repaired() {
    let server = Redis::new().start().await.unwrap();
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    server.cli(&["SET", "leasehold:{bad}:claim", "?"]);
    let mut watch = store.watch(Scope::Names(vec![lease("bad"), lease("job")])).await.unwrap();
    let Sighting::Trouble(error) = next(&mut watch).await else { panic!("it is damaged") };
    assert!(matches!(error.kind(), StoreErrorKind::Corrupt { .. }), "{error}");
    assert_eq!(error.lease(), Some(&lease("bad")));
    let granted = win(&other, "job").await;
    let Sighting::State(seen) = next(&mut watch).await else { panic!("told before") };
    assert_eq!(seen.claim(), Some(&granted.claim));
    // The repair tells nobody: whoever waits finds it by looking again.
    server.cli(&["SET", "leasehold:{bad}:claim", "heir=somebody fence=1", "PX", "3600000"]);
    let Sighting::State(seen) = next(&mut watch).await else { panic!("told before") };
    assert!(matches!(seen.state, LeaseState::Reserved { .. }), "{seen:?}");
}

/// B98: while one watch comes and goes, no other misses a change.
#[tokio::test]
async fn a_watch_of_everything_that_comes_and_goes_hides_nothing_from_another() {
    let server = Redis::new().start().await.unwrap();
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    let mut watch = store.watch(Scope::Names(vec![lease("job")])).await.unwrap();
    let mut everything = Vec::new();
    for round in 0..100 {
        let (opened, granted) = tokio::join!(store.watch(Scope::All), win(&other, "job"));
        everything.push(opened.unwrap());
        until(&mut watch, |record| record.claim() == Some(&granted.claim)).await;
        if round % 10 == 9 {
            everything.clear();
        }
        let (swept, ()) =
            tokio::join!(store.watch(Scope::Names(vec![lease("another")])), let_go(&other, &granted.claim));
        until(&mut watch, |record| record.state == LeaseState::Vacant).await;
        drop(swept);
    }
    eventually("only what is watched is subscribed", async || {
        server.cli(&["PUBSUB", "NUMPAT"]).number() == Some(0)
    })
    .await;
}
