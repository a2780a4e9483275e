//! What every test here needs: a store with faults, nodes on it, and a log of what they tell.

use leasehold::{
    BoxError, Election, Event, Fence, Happening, LeaseName, LeaseStore, MemoryStore, Node, Position,
    SharedStore, Term, TokioClock, WorkerOutcome,
};
use leasehold_testkit::{Faults, FaultyStore};
use std::{
    future::pending,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, timeout};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The default of a lease.
pub(crate) const TTL: Duration = Duration::from_secs(10);
/// How long a claim is trusted after its last request that succeeded.
pub(crate) const TRUST: Duration = Duration::from_secs(9);

/// A memory store, faults before it, and the clock that both and all nodes follow.
pub(crate) struct Stage {
    pub(crate) clock: Arc<TokioClock>,
    pub(crate) memory: MemoryStore,
    pub(crate) store: SharedStore,
    pub(crate) faults: Faults,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(TokioClock::new());
        let memory = MemoryStore::new(clock.clone());
        let (store, faults) = FaultyStore::new(Arc::new(memory.clone()));
        Self { clock, memory, store, faults }
    }

    /// A node behind the faults.
    pub(crate) async fn node(&self, id: &str) -> Node {
        self.start(id, self.store.clone(), &Log::default()).await
    }

    /// A node behind the faults, and what it tells.
    pub(crate) async fn told(&self, id: &str) -> (Node, Log) {
        let log = Log::default();
        (self.start(id, self.store.clone(), &log).await, log)
    }

    /// A node that no fault touches.
    pub(crate) async fn sound(&self, id: &str) -> Node {
        self.start(id, Arc::new(self.memory.clone()), &Log::default()).await
    }

    async fn start(&self, id: &str, store: SharedStore, log: &Log) -> Node {
        let log = log.clone();
        let node = Node::builder(store).replica(id).clock(self.clock.clone());
        node.observe(move |event| log.write(event)).start().await.unwrap()
    }

    /// Who holds the lease by the store, if anyone does.
    pub(crate) async fn holder(&self, name: &str) -> Option<String> {
        let record = self.memory.inspect(&name_of(name)).await.unwrap();
        record.claim().map(|claim| claim.replica.to_string())
    }

    /// Ends somebody's claim from outside.
    pub(crate) async fn force(&self, name: &str) {
        let by = "operator".try_into().unwrap();
        let forced = self.memory.force_release(&name_of(name), &by, "testing").await;
        assert!(matches!(forced, leasehold::Force::Forced { .. }), "{forced:?}");
    }
}

pub(crate) fn name_of(name: &str) -> LeaseName {
    name.try_into().unwrap()
}

/// What nodes told, and when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Instant, Event)>>>);

impl Log {
    pub(crate) fn write(&self, event: &Event) {
        self.0.lock().unwrap().push((Instant::now(), event.clone()));
    }

    pub(crate) fn all(&self) -> Vec<(Instant, Event)> {
        self.0.lock().unwrap().clone()
    }

    /// The names of what happened, renewals and the steps of handoffs left out.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let names = self.all().into_iter().map(|(_, event)| event.what.name());
        names.filter(|name| !matches!(*name, "renewed" | "handoff")).collect()
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.all().iter().filter(|(_, event)| event.what.name() == name).count()
    }

    /// When something was told first.
    pub(crate) fn first(&self, wanted: impl Fn(&Happening) -> bool) -> Option<Instant> {
        self.all().iter().find(|(_, event)| wanted(&event.what)).map(|(at, _)| *at)
    }
}

/// Waits until the election leads.
pub(crate) async fn leads(election: &Election) -> Fence {
    let mut position = election.position();
    let leading = position.wait_for(|position| matches!(position, Position::Leading(_)));
    let leading = timeout(600 * SECOND, leading).await.expect("leads within ten minutes").unwrap();
    let Position::Leading(fence) = &*leading else { unreachable!() };
    *fence
}

/// Waits until the election's term is over and its worker has ended.
pub(crate) async fn rests(election: &Election) -> Option<WorkerOutcome> {
    let mut position = election.position();
    let resting = position.wait_for(|position| matches!(position, Position::Resting { .. }));
    let resting = timeout(600 * SECOND, resting).await.expect("rests within ten minutes").unwrap();
    let Position::Resting { last } = &*resting else { unreachable!() };
    last.clone()
}

/// Waits until something holds, looking each virtual millisecond; fails after a virtual minute.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(MS).await;
    }
    panic!("not within a minute: {what}");
}

/// The future of work that has no end.
pub(crate) type Endless = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// Notes when it was dropped, and whether its term could still be trusted then.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grave(Arc<Mutex<Vec<(Instant, bool)>>>);

impl Grave {
    /// Something to be kept in the work.
    pub(crate) fn digger(&self, term: &Term) -> Digger {
        Digger(self.clone(), term.clone())
    }

    /// Something to be kept in work that is not shown its term.
    pub(crate) fn mark(self) -> Mark {
        Mark(self)
    }

    /// Work without an end, for each term, that leaves a mark when it is dropped.
    pub(crate) fn work(&self) -> impl Fn(Term) -> Endless + Send + Sync + 'static {
        let grave = self.clone();
        move |_| {
            let gone = grave.clone().mark();
            Box::pin(async move {
                let _gone = gone;
                pending().await
            })
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn only(&self) -> (Instant, bool) {
        let dropped = self.0.lock().unwrap();
        assert_eq!(dropped.len(), 1, "one work was dropped: {dropped:?}");
        dropped[0]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}

pub(crate) struct Digger(Grave, Term);

impl Drop for Digger {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().push((Instant::now(), self.1.check().is_ok()));
    }
}

pub(crate) struct Mark(Grave);

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().push((Instant::now(), false));
    }
}

/// The two moments are the same, but for the granularity of tokio's timers.
pub(crate) fn assert_at(at: Instant, expected: Instant) {
    let late = at.saturating_duration_since(expected);
    let early = expected.saturating_duration_since(at);
    assert!(early.is_zero() && late <= 2 * MS, "{early:?} early, {late:?} late");
}
