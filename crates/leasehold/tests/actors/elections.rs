//! Many candidates: one leader, few requests, and nobody is forgotten.

use super::stage::{MS, SECOND, Stage, TTL, leads, until};
use leasehold::{Election, Fence, Node, Position, ReplicaId, Stopped, StoreErrorKind};
use leasehold_core::Verb;
use leasehold_testkit::{Fault, Faults, FaultyStore};
use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Mutex},
};
use tokio::time::{Instant, sleep, timeout};

/// Who leads, one claim each: noted by the works themselves.
#[derive(Clone, Default)]
struct Thrones(Arc<Mutex<BTreeMap<usize, Fence>>>);

impl Thrones {
    async fn candidate(&self, node: &Node, number: usize, priority: i32) -> Election {
        let thrones = self.clone();
        let work = move |term: leasehold::Term| {
            let thrones = thrones.clone();
            async move {
                let others: Vec<_> = thrones.0.lock().unwrap().keys().copied().collect();
                assert_eq!(others, [] as [usize; 0], "two works at once");
                thrones.0.lock().unwrap().insert(number, term.fence());
                let _gone = Abdicates(thrones, number);
                term.quiescing().await;
                Ok(())
            }
        };
        node.election("l").priority(priority).lead(work).await.unwrap()
    }

    async fn leader(&self) -> usize {
        until("somebody leads", || !self.0.lock().unwrap().is_empty()).await;
        *self.0.lock().unwrap().keys().next().unwrap()
    }
}

struct Abdicates(Thrones, usize);

impl Drop for Abdicates {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().remove(&self.1);
    }
}

/// B88, B89, B90, I10: of two hundred candidates few bid for a vacancy, and it is filled at once.
#[tokio::test(start_paused = true)]
async fn two_hundred_candidates_make_no_herd() {
    let stage = Stage::new();
    let thrones = Thrones::default();
    let mut elections = Vec::new();
    let mut nodes = Vec::new();
    for n in 0..200 {
        let node = stage.node(&format!("r{n}")).await;
        elections.push(thrones.candidate(&node, n, 0).await);
        nodes.push(node);
        if n % 20 == 0 {
            sleep(MS).await;
        }
    }
    sleep(SECOND).await;

    // Handed over: heard by all, bid for by the heir, and by the one that goes back into the line.
    let (bids, looks) = (stage.faults.count(Verb::Acquire), stage.faults.count(Verb::Inspect));
    for vacancy in 0..8 {
        let leader = thrones.leader().await;
        let freed = Instant::now();
        elections[leader].step_down(SECOND, "testing");
        until("it has stepped down", || thrones.0.lock().unwrap().get(&leader).is_none()).await;
        thrones.leader().await;
        assert!(freed.elapsed() <= 100 * MS, "vacancy {vacancy}: {:?}", freed.elapsed());
        sleep(500 * MS).await;
    }
    let bids = stage.faults.count(Verb::Acquire) - bids;
    let looks = stage.faults.count(Verb::Inspect) - looks;
    assert!(bids <= 2 * 8, "8 vacancies: {bids} bids");
    assert!(looks <= 2 * 8, "8 vacancies: {looks} looks");

    // Idle: each looks about once a ttl, and they do not do so together.
    sleep(30 * SECOND).await;
    let before = stage.faults.total();
    let mut most = 0;
    let mut last = before;
    for _ in 0..6_000 {
        sleep(5 * MS).await;
        let total = stage.faults.total();
        most = most.max(total - last);
        last = total;
    }
    let requests = last - before;
    assert!(requests <= 200 * 30 / 2, "{requests} requests of 200 candidates in 30 idle seconds");
    assert!(most <= 40, "{most} requests within 5 ms: more than a fifth of the candidates");
}

/// The same for a leader that dies: nobody tells, and yet only the first of the line asks first.
#[tokio::test(start_paused = true)]
async fn a_death_before_fifty_candidates_is_noticed_by_few_of_them_at_once() {
    let stage = Stage::new();
    let (dying, death): (Arc<FaultyStore>, Faults) = FaultyStore::new(Arc::new(stage.memory.clone()));
    let first = Node::builder(dying).replica("first").clock(stage.clock.clone()).start().await.unwrap();
    let leader = first.election("l").lead(|_| async { pending().await }).await.unwrap();
    leads(&leader).await;
    let thrones = Thrones::default();
    let mut elections = Vec::new();
    let mut nodes = Vec::new();
    for n in 0..50 {
        let node = stage.node(&format!("r{n}")).await;
        elections.push(thrones.candidate(&node, n, 0).await);
        nodes.push(node);
    }
    sleep(35 * SECOND).await;
    death.everything(&Fault::Hang);
    let died = Instant::now();
    let bids = stage.faults.count(Verb::Acquire);
    thrones.leader().await;
    assert!(died.elapsed() <= TTL + 100 * MS, "{:?}", died.elapsed());
    sleep(SECOND).await;
    let bids = stage.faults.count(Verb::Acquire) - bids;
    assert!(bids <= 3, "{bids} bids");
}

/// B88: candidates at a store that fails at once, or says the same at once, ask at a bounded rate.
#[tokio::test(start_paused = true)]
async fn candidates_do_not_hammer_a_store_in_trouble() {
    let ways = [
        Fault::Error(StoreErrorKind::Unreachable),
        Fault::Error(StoreErrorKind::Full),
        Fault::LoseReply,
        Fault::LoseRequest,
        Fault::Panic,
        Fault::Skew(0.0),
    ];
    for way in ways {
        let stage = Stage::new();
        let sound = stage.sound("x").await;
        let held = sound.election("l").lead(|_| async { pending().await }).await.unwrap();
        leads(&held).await;
        stage.faults.everything(&way);
        let node = stage.node("a").await;
        let election = node.election("l").lead(|_| async { unreachable!("held") }).await.unwrap();
        sleep(60 * SECOND).await;
        let requests = stage.faults.total();
        assert!(requests <= 600, "{way:?}: {requests} requests in a minute");
        assert_eq!(*election.position().borrow(), Position::Campaigning, "{way:?}");
    }
}

/// B28: whatever happened to its store, every candidate comes back by itself.
#[tokio::test(start_paused = true)]
async fn every_candidate_comes_back_after_every_trouble() {
    let stage = Stage::new();
    let thrones = Thrones::default();
    let mut nodes = Vec::new();
    for n in 0..3 {
        let (store, faults) = FaultyStore::new(Arc::new(stage.memory.clone()));
        let node = Node::builder(store).replica(format!("r{n}")).clock(stage.clock.clone());
        let node = node.start().await.unwrap();
        let election = thrones.candidate(&node, n, 0).await;
        nodes.push((node, election, faults));
    }
    let ways = [
        Fault::Hang,
        Fault::HangAfter,
        Fault::LoseRequest,
        Fault::LoseReply,
        Fault::Error(StoreErrorKind::Unreachable),
        Fault::Error(StoreErrorKind::Full),
        Fault::Panic,
        Fault::Late(TTL),
        Fault::Slow(TTL),
        Fault::Skew(0.1),
    ];
    let mut led = [0; 3];
    for way in &ways {
        let leader = thrones.leader().await;
        led[leader] += 1;
        nodes[leader].2.everything(way);
        sleep(2 * TTL).await;
        nodes[leader].2.heal();
        timeout(TTL, thrones.leader()).await.expect("one leads");
    }
    // All at once, twice.
    for way in [Fault::Hang, Fault::LoseReply] {
        nodes.iter().for_each(|(_, _, faults)| faults.everything(&way));
        sleep(2 * TTL).await;
        nodes.iter().for_each(|(_, _, faults)| faults.heal());
        let healed = Instant::now();
        let leader = thrones.leader().await;
        assert!(healed.elapsed() <= TTL + TTL / 3, "{:?}", healed.elapsed());
        led[leader] += 1;
    }
    assert!(led.iter().filter(|times| **times > 0).count() >= 2, "{led:?}");
    sleep(2 * TTL).await;
    // Nobody sits idle: each leads when the others are gone.
    let mut left: Vec<_> = nodes.into_iter().enumerate().collect();
    while !left.is_empty() {
        let leader = timeout(TTL, thrones.leader()).await.expect("one leads");
        let at = left.iter().position(|(n, _)| *n == leader).unwrap();
        let (_, (_, election, _)) = left.remove(at);
        assert_eq!(election.stop(SECOND).await, Stopped::Clean);
    }
}

/// B59, F21: names are for people. Two processes with one id, or with ids that begin alike, are two candidates.
#[tokio::test(start_paused = true)]
async fn equal_and_similar_names_are_different_candidates() {
    let stage = Stage::new();
    let thrones = Thrones::default();
    let mut elections = Vec::new();
    let names = ["dev", "dev", "dev-server", "dev_", "Dev", "dev "];
    for (n, name) in names.iter().enumerate() {
        let node = stage.node(name).await;
        assert_eq!(node.replica(), &ReplicaId::new(*name).unwrap());
        elections.push(Some(thrones.candidate(&node, n, 0).await));
    }
    let mut seen = Vec::new();
    for _ in &names {
        let leader = thrones.leader().await;
        let leading: Vec<_> =
            elections.iter().flatten().filter(|election| election.leading().is_some()).collect();
        assert_eq!(leading.len(), 1, "exactly one");
        sleep(3 * TTL).await;
        assert_eq!(thrones.leader().await, leader, "nobody else renews or releases it");
        assert_eq!(elections[leader].take().unwrap().stop(SECOND).await, Stopped::Clean);
        seen.push(leader);
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5], "each had its turn");
}

/// The preferred one leads next, once the others know of it.
#[tokio::test(start_paused = true)]
async fn a_vacancy_goes_to_the_preferred_candidate_and_then_in_the_order_of_arrival() {
    let stage = Stage::new();
    let thrones = Thrones::default();
    let mut elections = Vec::new();
    for (n, priority) in [0, 0, -5, 10, 0].into_iter().enumerate() {
        let node = stage.node(&format!("r{n}")).await;
        elections.push(Some(thrones.candidate(&node, n, priority).await));
        sleep(20 * MS).await;
    }
    let mut order = Vec::new();
    for _ in 0..5 {
        // A refresh of the roster later everybody knows its place.
        sleep(3 * TTL).await;
        let leader = thrones.leader().await;
        assert_eq!(elections[leader].take().unwrap().stop(SECOND).await, Stopped::Clean);
        order.push(leader);
    }
    assert_eq!(order, [0, 3, 1, 4, 2]);
}

/// A leader that steps down lets others lead, and is in line again after one ttl.
#[tokio::test(start_paused = true)]
async fn stepping_down_gives_it_to_another_and_not_for_ever() {
    let stage = Stage::new();
    let (a, log) = stage.told("a").await;
    let alone = a.election("l").lead(|term| async move {
        term.quiescing().await;
        Ok(())
    });
    let alone = alone.await.unwrap();
    let first = leads(&alone).await;
    let begun = Instant::now();
    alone.step_down(SECOND, "testing");
    until("it has stepped down", || alone.leading().is_none()).await;
    assert_eq!(stage.holder("l").await, None, "released at once");
    let second = leads(&alone).await;
    assert!(second > first && begun.elapsed() >= TTL && begun.elapsed() <= TTL + 10 * MS);
    // With nobody who leads there is nothing to step down from.
    let b = stage.node("b").await;
    let waiting = b.election("l").lead(|_| async { unreachable!("never leads") }).await.unwrap();
    waiting.step_down(SECOND, "testing");
    sleep(60 * SECOND).await;
    assert_eq!((alone.leading(), log.count("acquired")), (Some(second), 2));
}
