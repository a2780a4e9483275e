//! The store under test, and what its author gives the suite with it.

use super::Passing;
use leasehold_core::{
    Acquire, AttemptId, Bid, BoxFuture, Candidacy, Claim, Fence, Granted, LeaseName, LeaseRecord, Parting,
    Release, ReplicaId, ResourceName, SharedStore, TraceContext,
};
use std::{fmt, sync::Arc, time::Duration};

type Damage = Arc<dyn Fn(LeaseName) -> BoxFuture<'static, ()> + Send + Sync>;
type Crash = Arc<dyn Fn(ReplicaId) -> BoxFuture<'static, ()> + Send + Sync>;

/// A fresh, empty store, seen through two handles.
pub struct Subject {
    /// The store.
    pub store: SharedStore,
    /// Another process' view of the same store: a connection of its own.
    pub other: SharedStore,
    /// The ttl of ordinary claims. Must be long enough for a dozen requests, and is waited for in some cases.
    pub ttl: Duration,
    /// How long an event may take that the store is to tell by itself: a letter, a state, an open gate. Real time,
    /// whatever the store's clock is; far above what any store needs, since it only turns a hang into a failure.
    pub patience: Duration,
    time: Box<dyn Passing>,
    damage: Option<Damage>,
    crash: Option<Crash>,
    kept: Vec<Box<dyn std::any::Any + Send + Sync>>,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("store", &self.store)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

impl Subject {
    /// A store, a second handle on it, and how its time passes. Ordinary claims get a ttl of one second.
    #[must_use]
    pub fn new(store: SharedStore, other: SharedStore, time: impl Passing) -> Self {
        let ttl = Duration::from_secs(1).max(store.traits().min_ttl);
        let patience = Duration::from_secs(15);
        Self {
            store,
            other,
            ttl,
            patience,
            time: Box::new(time),
            damage: None,
            crash: None,
            kept: Vec::new(),
        }
    }

    /// Keeps something alive as long as the store is tested: its directory, its server.
    #[must_use]
    pub fn keeping(mut self, thing: impl Send + Sync + 'static) -> Self {
        self.kept.push(Box::new(thing));
        self
    }

    /// Another ttl for ordinary claims.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// For cases in which nothing is to expire, however slow the store is.
    pub(super) fn unhurried(self) -> Self {
        let ttl = Duration::from_secs(600).min(self.store.traits().max_ttl);
        self.with_ttl(ttl)
    }

    /// How to damage what the store keeps of a lease, so that it cannot be read. Without it the cases of rule 8 pass
    /// unseen, and say so.
    #[must_use]
    pub fn damaged_by(
        mut self,
        damage: impl Fn(LeaseName) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.damage = Some(Arc::new(damage));
        self
    }

    /// How to end the process of a replica, as far as the store can see. Needed by stores whose
    /// [`Traits`](leasehold_core::Traits) promise a crash witness.
    #[must_use]
    pub fn crashed_by(
        mut self,
        crash: impl Fn(ReplicaId) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.crash = Some(Arc::new(crash));
        self
    }

    /// Lets time pass at the store.
    pub async fn pass(&self, duration: Duration) {
        self.time.pass(duration).await;
    }

    /// Lets so much time pass that claims of the ordinary ttl are over, and no renewal was too early.
    pub async fn outlive(&self, ttl: Duration) {
        // Stores count in milliseconds, and may round up.
        self.pass(ttl + Duration::from_millis(20)).await;
    }

    /// Whether long waiting costs real time.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.time.is_real()
    }

    pub(super) fn damage(&self) -> Option<Damage> {
        self.damage.clone()
    }

    pub(super) fn crash(&self) -> Option<Crash> {
        self.crash.clone()
    }

    /// A fresh bid for the lease `name` by `replica`.
    #[must_use]
    pub fn bid(&self, name: &str, by: &str) -> Bid {
        Bid {
            name: lease(name),
            replica: replica(by),
            attempt: AttemptId::random(),
            ttl: self.ttl,
            floor: None,
            crash_witness: false,
            trace: TraceContext::NONE,
        }
    }

    /// Acquires a lease that must be free.
    pub async fn win(&self, name: &str, by: &str) -> Granted {
        won(self.store.acquire(&self.bid(name, by)).await)
    }

    /// Releases a claim that must live, leaving nothing.
    pub async fn let_go(&self, claim: &Claim) {
        self.part(claim, &Parting::default()).await;
    }

    /// Releases a claim that must live.
    pub async fn part(&self, claim: &Claim, parting: &Parting) {
        let answer = self.store.release(claim, parting).await;
        assert_eq!(answer, Release::Released, "{claim} was to be released");
    }

    /// The record of a lease, which both handles must tell alike.
    pub async fn record(&self, name: &str) -> LeaseRecord {
        let (here, there) = (self.store.inspect(&lease(name)).await, self.other.inspect(&lease(name)).await);
        let (here, there) = (here.expect("inspect"), there.expect("inspect by the other handle"));
        assert!(here.same_standing(&there), "two handles, two stories: {here:?} and {there:?}");
        here
    }
}

/// A lease name that is known to be valid.
#[must_use]
pub fn lease(name: &str) -> LeaseName {
    LeaseName::new(name).expect("a valid lease name")
}

/// A replica id that is known to be valid.
#[must_use]
pub fn replica(id: &str) -> ReplicaId {
    ReplicaId::new(id).expect("a valid replica id")
}

pub(super) fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).expect("a valid resource name")
}

pub(super) fn fence(number: u64) -> Fence {
    Fence::new(number).expect("a valid fence")
}

pub(super) fn candidacy(name: &str, by: &str, priority: i32) -> Candidacy {
    Candidacy { name: lease(name), replica: replica(by), id: AttemptId::random(), priority }
}

/// The grant of an answer that must be one.
#[must_use]
#[track_caller]
pub fn won(answer: Acquire) -> Granted {
    match answer {
        Acquire::Granted(granted) => granted,
        other => panic!("it was to be granted: {other:?}"),
    }
}

/// The refusal of an answer that must be one.
#[track_caller]
pub(super) fn held(answer: Acquire) -> leasehold_core::Held {
    match answer {
        Acquire::Held(held) => held,
        other => panic!("it was to be held by somebody else: {other:?}"),
    }
}
