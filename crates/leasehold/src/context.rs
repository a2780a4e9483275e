//! What every actor of a node shares.

use crate::{clerk::ClerkMsg, event::Events, mailroom::MailroomMsg, telemetry::Traces, watcher::WatcherMsg};
use leasehold_core::{Clock, Fence, LeaseName, Moment, ReplicaId, SharedStore};
use ractor::ActorRef;
use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};
use tokio::runtime::Handle;

/// What every actor of a node shares. One word to clone: every actor of every term has one.
#[derive(Debug, Clone)]
pub(crate) struct Context(Arc<Shared>);

/// Values, and the three actors that talk to the store.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: SharedStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) replica: ReplicaId,
    pub(crate) events: Events,
    pub(crate) traces: Traces,
    /// Where workers run: the runtime on which the node was started.
    pub(crate) app: Handle,
    /// Where our own actors run: the same one, or that of `renew_on`.
    pub(crate) own: Handle,
    /// Whether `own` is another runtime than `app`, so that renewals need the worker's pulse.
    pub(crate) apart: bool,
    pub(crate) floors: Floors,
    /// Set when a release could not even be asked for, or is overdue for good: a shutdown must not claim otherwise.
    pub(crate) unconfirmed: Arc<AtomicBool>,
    pub(crate) clerk: ActorRef<ClerkMsg>,
    pub(crate) watcher: ActorRef<WatcherMsg>,
    pub(crate) mailroom: ActorRef<MailroomMsg>,
}

impl Deref for Context {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Context {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// From now until `at`; zero if it has passed.
    pub(crate) fn until(&self, at: Moment) -> Duration {
        at.since(self.now())
    }
}

/// The highest fence of each name that this process has seen, so that a store which lost its counter is repaired.
#[derive(Debug, Clone, Default)]
pub(crate) struct Floors(Arc<Mutex<HashMap<LeaseName, Fence>>>);

impl Floors {
    pub(crate) fn get(&self, name: &LeaseName) -> Option<Fence> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    pub(crate) fn raise(&self, name: &LeaseName, fence: Option<Fence>) {
        let Some(fence) = fence else { return };
        let mut floors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let floor = floors.entry(name.clone()).or_insert(fence);
        *floor = fence.max(*floor);
    }
}
