//! Setting a node up.

use super::{
    Node, Seat, Unclaimed,
    members::Members,
    root::{Root, RootArgs},
};
use crate::{
    context::{Context, Floors, Shared},
    error::StartError,
    event::{Event, Events, Observer},
    telemetry::{Propagator, Traces},
};
use leasehold_core::{BootClock, Clock, NameError, ReplicaId, SharedStore};
use ractor::Actor;
use std::{fmt, sync::Arc};
use tokio::runtime::Handle;

/// A node that is being set up; made by [`Node::builder`].
#[must_use = "a node does nothing before `start` is called"]
pub struct NodeBuilder {
    store: SharedStore,
    replica: Option<Result<ReplicaId, NameError>>,
    clock: Arc<dyn Clock>,
    renew_on: Option<Handle>,
    observers: Vec<Box<Observer>>,
    propagator: Option<Arc<dyn Propagator>>,
}

impl NodeBuilder {
    pub(super) fn new(store: SharedStore) -> Self {
        let clock = Arc::new(BootClock);
        Self { store, replica: None, clock, renew_on: None, observers: Vec::new(), propagator: None }
    }

    /// The replica's id, for people to read. Default: process id and a random number. Two processes with one id are
    /// still two candidates and two claims.
    pub fn replica<N>(mut self, id: N) -> Self
    where
        N: TryInto<ReplicaId>,
        N::Error: Into<NameError>,
    {
        self.replica = Some(id.try_into().map_err(Into::into));
        self
    }

    /// The clock that trust is measured by. Default: the boot clock of the operating system. Tests under tokio's paused
    /// clock use [`TokioClock`](leasehold_core::TokioClock).
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Runs everything but the workers on another runtime, so that work which keeps its own runtime busy does not cost
    /// its lease. Renewals then depend on the worker's pulse: a wedged worker loses its lease within two ttls.
    pub fn renew_on(mut self, runtime: Handle) -> Self {
        self.renew_on = Some(runtime);
        self
    }

    /// Calls `observer` with each event, on the actor that tells it: it must return quickly and not block. A panic in
    /// it is caught and logged.
    pub fn observe(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Carries traces into records and letters.
    pub fn propagator(mut self, propagator: Arc<dyn Propagator>) -> Self {
        self.propagator = Some(propagator);
        self
    }

    /// Starts the node. The runtime of the caller is where workers will run.
    ///
    /// # Errors
    /// [`StartError`] for a bad replica id, or without a runtime.
    pub async fn start(self) -> Result<Node, StartError> {
        let app = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let replica = self.replica.transpose()?.unwrap_or_else(ReplicaId::generate);
        let apart = self.renew_on.is_some();
        let own = self.renew_on.unwrap_or_else(|| app.clone());
        let traces = Traces::new(self.propagator);
        let (store, clock) = (self.store, self.clock);
        let events = Events::new(replica.clone(), self.observers);
        let args = RootArgs {
            store: store.clone(),
            clock: clock.clone(),
            events: events.clone(),
            traces: traces.clone(),
            replica: replica.clone(),
        };
        let started = own.spawn(async move {
            let (root, _) = Actor::spawn(None, Root, args).await?;
            let unclaimed = Unclaimed::new(root.clone());
            let staff = root.call(super::root::RootMsg::Staff, None).await?;
            Ok::<_, ractor::ActorProcessingErr>((unclaimed, staff.unwrap()))
        });
        let Ok(Ok((root, staff))) = started.await else { return Err(StartError::NoRuntime) };
        let root = root.claim();
        let floors = Floors::default();
        let ctx = Context::new(Shared {
            store,
            clock,
            replica,
            events,
            traces,
            app,
            own,
            apart,
            floors,
            unconfirmed: Arc::default(),
            clerk: staff.clerk,
            watcher: staff.watcher,
            mailroom: staff.mailroom,
        });
        Ok(Node { seat: Arc::new(Seat { ctx, root, members: Members::default() }) })
    }
}

impl fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeBuilder(on {})", self.store.address())
    }
}
