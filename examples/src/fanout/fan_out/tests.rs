use super::*;
use crate::fanout::{
    directory::Directory, endpoint::Endpoint, event::Stamped, feed::Feed, gate::Gate, journal::Told, upstream,
};
use leasehold::{AttemptId, Claim, Fence, Keeper, LeaseName, ManualClock, Moment, ReplicaId};
use std::path::{Path, PathBuf};
use tokio::net::TcpListener;

/// Real servers on the loopback interface, without an election: the terms are made by hand.
struct Troupe {
    feed: Feed,
    directory: Directory,
    upstream: Upstream,
    http: reqwest::Client,
    dir: tempfile::TempDir,
    clock: ManualClock,
}

impl Troupe {
    async fn new() -> Self {
        let (feed, directory) = (Feed::new(1_000), Directory::default());
        let http = reqwest::Client::new();
        let addr = upstream::serve(feed.clone(), directory.clone()).await.unwrap();
        let upstream = Upstream::new(addr, http.clone());
        let clock = ManualClock::starting_at(Moment::from_nanos(1));
        Self { feed, directory, upstream, http, dir: tempfile::tempdir().unwrap(), clock }
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.dir.path().join(id)
    }

    async fn start(&self, id: &str) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        self.directory.enter(id, listener.local_addr().unwrap());
        let app = Endpoint::new(Gate::open(&self.journal(id)).unwrap()).router();
        tokio::spawn(async move { axum::serve(listener, app).await });
    }

    fn emit(&self, count: usize) {
        (0..count).for_each(|_| drop(self.feed.emit("an event".to_owned())));
    }

    fn mandate(&self, me: &str, fence: u64) -> Mandate {
        let claim = Claim {
            name: LeaseName::new("feed").unwrap(),
            replica: ReplicaId::new(me).unwrap(),
            attempt: AttemptId::random(),
            fence: Fence::new(fence).unwrap(),
        };
        Keeper::new(claim, Moment::from_nanos(u64::MAX), Arc::new(self.clock.clone())).grant().clone()
    }

    fn lead(&self, me: &str, fence: u64) -> tokio::task::JoinHandle<Result<(), LaneEnd>> {
        let fan_out = FanOut {
            me: me.to_owned(),
            replicas: vec!["r1".to_owned(), "r2".to_owned()],
            upstream: self.upstream.clone(),
            http: self.http.clone(),
            hold: Arc::default(),
        };
        tokio::spawn(fan_out.run(self.mandate(me, fence)))
    }
}

/// Waits until the journal has `count` events.
async fn until(journal: &Path, count: usize) -> Vec<Stamped> {
    told(journal, |told| told.events.len() >= count).await.events
}

/// Waits until the journal tells what is wanted.
async fn told(journal: &Path, wanted: impl Fn(&Told) -> bool) -> Told {
    tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            // A journal that is being written may end in half a line: look again.
            if let Ok(told) = Told::audit(journal)
                && wanted(&told)
            {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_new_leader_resumes_where_the_replicas_are_and_the_old_one_is_turned_away() {
    let troupe = Troupe::new().await;
    troupe.start("r1").await;
    troupe.start("r2").await;
    troupe.emit(150);
    let old = troupe.lead("r1", 1);
    until(&troupe.journal("r2"), 150).await;

    let new = troupe.lead("r2", 2);
    for id in ["r1", "r2"] {
        told(&troupe.journal(id), |told| told.highest == Fence::new(2).ok()).await;
    }
    // Both see these events, and only one may bring them.
    troupe.emit(50);
    let end = tokio::time::timeout(Duration::from_secs(20), old).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(end, LaneEnd::TurnedAway { .. }), "{end}");
    for id in ["r1", "r2"] {
        let events = until(&troupe.journal(id), 200).await;
        assert_eq!(events.len(), 200);
        assert_eq!((events[0].fence.get(), events[199].fence.get()), (1, 2));
    }
    new.abort();
}

#[tokio::test]
async fn a_replica_that_comes_late_gets_what_the_leader_no_longer_remembers() {
    let troupe = Troupe::new().await;
    troupe.start("r1").await;
    troupe.emit(300);
    let first = troupe.lead("r1", 1);
    until(&troupe.journal("r1"), 300).await;
    first.abort();
    // This one begins at event 301, for r2 is out of reach.
    let second = troupe.lead("r1", 2);
    troupe.emit(10);
    until(&troupe.journal("r1"), 310).await;
    troupe.start("r2").await;
    let events = until(&troupe.journal("r2"), 310).await;
    assert!(events.iter().all(|e| e.fence.get() == 2));
    second.abort();
}

#[tokio::test]
async fn a_leader_whose_own_look_says_no_delivers_nothing_more() {
    // I4, as far as a check can carry it.
    let troupe = Troupe::new().await;
    troupe.start("r1").await;
    troupe.start("r2").await;
    let leader = troupe.lead("r1", 1);
    troupe.emit(5);
    until(&troupe.journal("r2"), 5).await;
    troupe.clock.set(Moment::from_nanos(u64::MAX));
    troupe.emit(5);
    let end = leader.await.unwrap().unwrap_err();
    assert!(matches!(end, LaneEnd::Lost(_)), "{end}");
    assert_eq!(Told::audit(&troupe.journal("r2")).unwrap().events.len(), 5);
}
