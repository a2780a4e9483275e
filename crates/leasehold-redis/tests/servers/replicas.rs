//! `wait=N`: a grant counts when N replicas have it, and else it is as if it had never been.

use crate::common::{bid, eventually, keys, lease, let_go, open, refused, renew, replica, win, won};
use leasehold_core::{
    Acquire, Bid, Fate, Force, Held, LeaseState, LeaseStore, Note, Parting, Predecessor, Release, Renew,
    StoreErrorKind,
};
use leasehold_redis::RedisStore;
use leasehold_testkit::{
    faults::{Direction, Proxy},
    redis::{Redis, RedisServer},
};
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(600);

/// A primary and its replica, with a cable between them that can be cut.
struct Pair {
    primary: RedisServer,
    replica: RedisServer,
    cable: Proxy,
    /// Waits for the replica, as long as it takes.
    patient: RedisStore,
    /// Waits for the replica, and not for long.
    careful: RedisStore,
    /// Waits for nobody.
    plain: RedisStore,
}

impl Pair {
    async fn new() -> Self {
        let primary = Redis::new().config("repl-diskless-sync-delay", "0").start().await.unwrap();
        let cable = Proxy::start(primary.addr()).await.unwrap();
        let to = format!("127.0.0.1 {}", cable.addr().port());
        let replica = Redis::new().config("replicaof", &to).start().await.unwrap();
        let patient = open(&format!("{}?wait=1&wait_timeout=20s", primary.url())).await;
        let careful = open(&format!("{}?wait=1&wait_timeout=50ms", primary.url())).await;
        let plain = open(&primary.url()).await;
        let pair = Self { primary, replica, cable, patient, careful, plain };
        pair.whole().await;
        pair
    }

    async fn whole(&self) {
        self.cable.heal();
        eventually("the replica follows", async || {
            self.primary.cli(&["INFO", "replication"]).text().contains("state=online")
        })
        .await;
    }

    fn cut(&self) {
        self.cable.refuse();
        self.cable.reset();
    }

    /// A grant that does not count, by `careful`.
    async fn in_vain(&self, bid: &Bid) {
        let kind = refused(self.careful.acquire(bid).await);
        let StoreErrorKind::NotWriting(said) = &kind else { panic!("{kind:?}") };
        assert!(said.contains("0 of 1 replicas"), "{said}");
    }
}

#[tokio::test]
async fn a_grant_that_too_few_replicas_have_is_none() {
    let pair = Pair::new().await;
    let granted = won(pair.patient.acquire(&bid("job", "me")).await);
    assert_eq!(pair.replica.cli(&["EXISTS", "leasehold:{job}:claim"]).number(), Some(1));
    let_go(&pair.patient, &granted.claim).await;
    // The cable is cut, or it is there and carries nothing.
    pair.cut();
    pair.in_vain(&bid("job", "me")).await;
    assert_eq!(keys(&pair.primary), ["leasehold:{job}:fence"]);
    pair.whole().await;
    pair.cable.blackhole(Direction::Up);
    pair.in_vain(&bid("job", "me")).await;
    assert!(pair.cable.swallowed() > 0);
    pair.cable.heal();
    pair.cable.reset();
    let _ = won(pair.patient.acquire(&bid("job", "me")).await);
    assert_eq!(pair.replica.cli(&["EXISTS", "leasehold:{job}:claim"]).number(), Some(1));
}

/// How the last term ended, and what the next one is told of it, is what it was, however often a grant was taken back.
#[tokio::test]
async fn whatever_the_term_before_left_waits_on_behind_a_grant_that_was_taken_back() {
    let pair = Pair::new().await;
    for fate in [Fate::None, Fate::Released, Fate::HandedOff, Fate::Expired, Fate::Forced, Fate::Crashed] {
        let name = fate.as_str();
        let note = match fate {
            Fate::None => None,
            _ => end_one(&pair, name, fate).await,
        };
        let before = pair.plain.inspect(&lease(name)).await.unwrap();
        assert_eq!(before.predecessor.fate(), fate);
        pair.cut();
        for _ in 0..3 {
            pair.in_vain(&bid(name, "heir")).await;
        }
        let after = pair.plain.inspect(&lease(name)).await.unwrap();
        assert_eq!(after.predecessor, before.predecessor, "{name}");
        let issued = before.counter.map_or(0, |counter| counter.get()) + 3;
        assert_eq!(after.counter.unwrap().get(), issued, "{name}: no fence twice");
        if fate == Fate::HandedOff {
            let LeaseState::Reserved { heir, remaining } = &after.state else { panic!("{after:?}") };
            assert_eq!(*heir, replica("heir"));
            assert!(*remaining <= before.remaining(), "no longer than it was: {after:?}");
            assert!(*remaining > WINDOW / 2, "{after:?}");
            let answer = pair.plain.acquire(&bid(name, "other")).await;
            assert!(matches!(answer, Acquire::Held(Held { reserved: true, .. })), "{answer:?}");
        } else {
            assert_eq!(after.state, LeaseState::Vacant, "{name}");
        }
        pair.whole().await;
        let next = won(pair.plain.acquire(&bid(name, "heir")).await);
        assert_eq!(next.claim.fence.get(), issued + 1, "{name}");
        assert_eq!((&next.predecessor, &next.inherited), (&before.predecessor, &note), "{name}");
        let held = pair.plain.inspect(&lease(name)).await.unwrap();
        assert_eq!(held.predecessor, before.predecessor, "{name}");
        let_go(&pair.plain, &next.claim).await;
    }
}

/// A term that ends in this way, and the note that it leaves.
async fn end_one(pair: &Pair, name: &str, fate: Fate) -> Option<Note> {
    let mut wanted = bid(name, "me");
    wanted.crash_witness = fate == Fate::Crashed;
    let granted = match fate {
        // Its process ends with it.
        Fate::Crashed => won(open(&pair.primary.url()).await.acquire(&wanted).await),
        _ => won(pair.plain.acquire(&wanted).await),
    };
    let mut parting = Parting::default();
    match fate {
        Fate::Released | Fate::HandedOff => {
            parting.note = Some(Note::new(granted.claim.fence, &b"state"[..]).unwrap());
            parting.heir = (fate == Fate::HandedOff).then(|| (replica("heir"), WINDOW));
            assert_eq!(pair.plain.release(&granted.claim, &parting).await, Release::Released);
        }
        Fate::Forced => {
            let forced = pair.plain.force_release(&granted.claim.name, &replica("ops"), "stuck").await;
            assert!(matches!(forced, Force::Forced { .. }), "{forced:?}");
        }
        Fate::Expired => drop(pair.primary.cli(&["DEL", &format!("leasehold:{{{name}}}:claim")])),
        _ => {}
    }
    eventually("it has ended", async || {
        pair.plain.inspect(&lease(name)).await.unwrap().predecessor.fate() == fate
    })
    .await;
    parting.note
}

/// Rule 4: a late copy of its request must not take the lease for nobody.
#[tokio::test]
async fn an_attempt_that_was_taken_back_is_spent_until_two_further_terms_have_begun() {
    let pair = Pair::new().await;
    for (name, held_before) in [("new", false), ("old", true)] {
        if held_before {
            let granted = win(&pair.plain, name).await;
            let_go(&pair.plain, &granted.claim).await;
        }
        pair.cut();
        let (first, second) = (bid(name, "me"), bid(name, "me"));
        pair.in_vain(&first).await;
        pair.in_vain(&second).await;
        for late in [&first, &second] {
            assert_eq!(refused(pair.plain.acquire(late).await), StoreErrorKind::SpentAttempt, "{name}");
        }
        let granted = win(&pair.plain, name).await;
        assert_eq!(matches!(granted.predecessor, Predecessor::None), !held_before);
        let_go(&pair.plain, &granted.claim).await;
        for late in [&second, &first] {
            assert_eq!(refused(pair.plain.acquire(late).await), StoreErrorKind::SpentAttempt, "{name}");
        }
        pair.whole().await;
    }
}

/// Whoever came between holds the lease, and is not ended for the sake of a grant that did not count.
#[tokio::test]
async fn what_came_between_a_grant_and_its_undoing_stands() {
    let pair = Pair::new().await;
    pair.cut();
    let careful = open(&format!("{}?wait=1&wait_timeout=2s", pair.primary.url())).await;
    let asked = tokio::spawn(async move { careful.acquire(&bid("job", "me")).await });
    eventually("it is granted", async || pair.plain.inspect(&lease("job")).await.unwrap().claim().is_some())
        .await;
    let forced = pair.plain.force_release(&lease("job"), &replica("ops"), "stuck").await;
    assert!(matches!(forced, Force::Forced { .. }), "{forced:?}");
    let other = win(&pair.plain, "job").await;
    refused(asked.await.unwrap());
    assert!(matches!(renew(&pair.plain, &other.claim).await, Renew::Renewed { .. }));
    let record = pair.plain.inspect(&lease("job")).await.unwrap();
    assert_eq!(record.predecessor.fate(), Fate::Forced, "{record:?}");
}

/// A claim whose end came while it was waited for was not one either.
#[tokio::test]
async fn a_grant_that_expired_while_it_was_waited_for_is_undone_all_the_same() {
    let pair = Pair::new().await;
    let granted = win(&pair.plain, "job").await;
    let_go(&pair.plain, &granted.claim).await;
    pair.cut();
    let careful = open(&format!("{}?wait=1&wait_timeout=300ms", pair.primary.url())).await;
    let mut short = bid("job", "me");
    short.ttl = Duration::from_millis(50);
    refused(careful.acquire(&short).await);
    let record = pair.plain.inspect(&lease("job")).await.unwrap();
    assert!(matches!(record.predecessor, Predecessor::Released(_)), "{record:?}");
}

/// The term was lost beside the claim: there is nothing to restore, but the claim ends, and its fence was issued.
#[tokio::test]
async fn a_counter_that_is_lost_meanwhile_gives_no_fence_twice() {
    let pair = Pair::new().await;
    pair.cut();
    let careful = open(&format!("{}?wait=1&wait_timeout=2s", pair.primary.url())).await;
    let asked = tokio::spawn(async move { careful.acquire(&bid("job", "me")).await });
    eventually("it is granted and its counter lost", async || {
        pair.primary.cli(&["DEL", "leasehold:{job}:fence"]).number() == Some(1)
    })
    .await;
    refused(asked.await.unwrap());
    assert_eq!(win(&pair.plain, "job").await.claim.fence.get(), 2);
}

/// The undoing is carried out and its answer lost: its repetition knows it.
#[tokio::test]
async fn an_undoing_whose_answer_is_lost_is_known_by_its_repetition() {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let store = open(&format!("redis://{}?wait=1&wait_timeout=10ms", proxy.addr())).await;
    for round in 0..2 {
        if round == 1 {
            // The first to name an attempt is the acquire; by now both scripts are known.
            proxy.lose_reply_to(2, "attempt=");
        }
        let kind = refused(store.acquire(&bid("job", "me")).await);
        assert!(matches!(kind, StoreErrorKind::NotWriting(_)), "{kind:?}");
        assert_eq!(keys(&server), ["leasehold:{job}:fence"]);
    }
    assert_eq!(proxy.broken(), 1);
}

/// Memory that is full when the grant is taken back keeps nobody out.
#[tokio::test]
async fn a_full_server_takes_a_grant_back_as_well() {
    let pair = Pair::new().await;
    pair.cut();
    let old = win(&pair.plain, "job").await;
    let parting = Parting { heir: Some((replica("me"), WINDOW)), ..Parting::default() };
    assert_eq!(pair.plain.release(&old.claim, &parting).await, Release::Released);
    let careful = open(&format!("{}?wait=1&wait_timeout=1s", pair.primary.url())).await;
    let asked = tokio::spawn(async move { careful.acquire(&bid("job", "me")).await });
    eventually("it is granted", async || pair.plain.inspect(&lease("job")).await.unwrap().claim().is_some())
        .await;
    pair.primary.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let kind = refused(asked.await.unwrap());
    assert!(matches!(kind, StoreErrorKind::NotWriting(_)), "{kind:?}");
    let record = pair.plain.inspect(&lease("job")).await.unwrap();
    assert!(matches!(record.state, LeaseState::Reserved { .. }), "{record:?}");
    assert!(matches!(record.predecessor, Predecessor::HandedOff(_)), "{record:?}");
}
