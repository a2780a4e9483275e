//! What happens to leases, told to whoever observes a node.

use crate::telemetry;
use leasehold_core::{
    Fence, JeopardyCause, LeaseName, LostCause, Predecessor, ReplicaId, Stale,
    handoff::{HandoffId, Step},
};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// One thing that happened. The names and fields are those of the program's `--events`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// The wall clock when it was told. For people: no decision of a lease ever reads a wall clock.
    pub at: SystemTime,
    /// The lease.
    pub lease: LeaseName,
    /// The replica that tells it.
    pub replica: ReplicaId,
    /// The fence of the term, where there is one.
    pub fence: Option<Fence>,
    /// What happened.
    pub what: Happening,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Happening {
    /// A campaign began.
    Campaigning,
    /// The lease was granted to us.
    Acquired {
        /// How the term before ended.
        predecessor: Predecessor,
        /// Since the campaign began.
        waited: Duration,
        /// How long the claim is trusted without a renewal.
        trusted: Duration,
    },
    /// A renewal did not succeed; the lease is still held.
    Jeopardy {
        /// Why.
        cause: JeopardyCause,
        /// Until the end of trust.
        remaining: Duration,
    },
    /// A renewal succeeded.
    Renewed {
        /// Until the end of trust.
        remaining: Duration,
    },
    /// The store's clock does not add up.
    ClockAnomaly {
        /// What was asked for.
        asked: Duration,
        /// What the store said is left.
        remaining: Duration,
    },
    /// The term is over.
    Lost {
        /// Why.
        cause: LostCause,
    },
    /// The worker was asked to end.
    Quiescing {
        /// Who asked: a replica, or what in this process did.
        by: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// The worker ended, and everything it spawned through its term.
    WorkerEnded {
        /// How.
        outcome: WorkerOutcome,
    },
    /// The worker did not end in time: blocking code cannot be stopped from outside.
    Overrun {
        /// How long it has been waited for.
        waited: Duration,
    },
    /// The lease was released.
    Released {
        /// The only replica that is granted for a while.
        heir: Option<ReplicaId>,
    },
    /// A handoff went a step on, at this replica.
    Handoff {
        /// Which; both replicas tell the same.
        id: HandoffId,
        /// The step.
        step: Step,
        /// Since this replica was asked.
        elapsed: Duration,
        /// With the last step of the incumbent: how long nobody led (see [`Handover::gap`](crate::Handover::gap)).
        gap: Option<Duration>,
    },
    /// A fenced resource refused a fence.
    StaleRefused {
        /// The resource.
        resource: Arc<str>,
        /// The fences.
        stale: Stale,
    },
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerOutcome {
    /// It finished, or stopped itself.
    Finished,
    /// It returned an error, or panicked. The text is its own.
    Failed(Arc<str>),
    /// It could not be started. The text is its own.
    NotStarted(Arc<str>),
    /// It was killed, since its term was over or its time to quiesce was.
    Killed,
}

impl WorkerOutcome {
    /// The word for it: `finished`, `failed`, `not-started`, `killed`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed(_) => "failed",
            Self::NotStarted(_) => "not-started",
            Self::Killed => "killed",
        }
    }
}

impl Happening {
    /// The word for it, as in `--events`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Campaigning => "campaigning",
            Self::Acquired { .. } => "acquired",
            Self::Jeopardy { .. } => "jeopardy",
            Self::Renewed { .. } => "renewed",
            Self::ClockAnomaly { .. } => "clock-anomaly",
            Self::Lost { .. } => "lost",
            Self::Quiescing { .. } => "quiescing",
            Self::WorkerEnded { .. } => "worker-ended",
            Self::Overrun { .. } => "overrun",
            Self::Released { .. } => "released",
            Self::Handoff { .. } => "handoff",
            Self::StaleRefused { .. } => "stale-refused",
        }
    }
}

pub(crate) type Observer = dyn Fn(&Event) + Send + Sync;

/// Where the actors of one node tell their events.
#[derive(Clone)]
pub(crate) struct Events {
    replica: ReplicaId,
    observers: Arc<[Box<Observer>]>,
}

impl Events {
    pub(crate) fn new(replica: ReplicaId, observers: Vec<Box<Observer>>) -> Self {
        Self { replica, observers: observers.into() }
    }

    pub(crate) fn tell(&self, lease: &LeaseName, fence: Option<Fence>, what: Happening) {
        let event =
            Event { at: wall_clock(), lease: lease.clone(), replica: self.replica.clone(), fence, what };
        telemetry::log(&event);
        for observe in self.observers.iter() {
            // An observer's panic must not take a renewer down with it.
            if catch_unwind(AssertUnwindSafe(|| observe(&event))).is_err() {
                telemetry::observer_panicked(&event);
            }
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Events({} observers)", self.observers.len())
    }
}

/// The one place of this crate that reads a wall clock.
#[allow(clippy::disallowed_methods, reason = "what people read may use the wall clock; no lease logic does")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
