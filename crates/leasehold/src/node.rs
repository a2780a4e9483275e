//! The node: one replica's presence at one store, and the root of its supervision tree.

mod builder;
mod root;
mod stop;

pub use builder::NodeBuilder;
pub use stop::Stopped;

use crate::{context::Context, election::ElectionBuilder, error::StartError, lease::Lease};
use leasehold_core::{LeaseName, NameError, ReplicaId, SharedStore};
use ractor::{Actor, ActorCell, ActorRef};
use root::RootMsg;
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// One replica's presence at one store. Cheap to clone; clones are the same node.
///
/// Everything that a node runs stands below one root in ractor's supervision tree. Nothing is named globally: a
/// process may have several nodes, for several stores or, in tests, as several replicas.
///
/// When the last clone, and the last election made from it, is dropped, the node is shut down in the background.
/// [`Node::shutdown`] does it in the open.
#[derive(Clone)]
pub struct Node {
    seat: Arc<Seat>,
}

struct Seat {
    ctx: Context,
    root: ActorRef<RootMsg>,
    members: Arc<Members>,
}

/// What must be stopped before the root is.
#[derive(Default)]
struct Members {
    list: Mutex<Vec<Member>>,
    // Set when the shutdown begins: nothing new is started from then on.
    closed: AtomicBool,
}

/// An election or a held lease, and how to stop it.
#[derive(Clone)]
struct Member {
    cell: ActorCell,
    stop: Arc<dyn Fn(Duration) + Send + Sync>,
}

impl Node {
    /// Starts a node on the store at `url`, with a generated replica id. See [`connect`](crate::connect) for the
    /// addresses, and [`Node::builder`] for more choices.
    ///
    /// # Errors
    /// [`StartError`] if the store cannot be opened.
    pub async fn connect(url: &str) -> Result<Self, StartError> {
        Self::builder(crate::connect(url).await?).start().await
    }

    /// A node on a store that is already open.
    pub fn builder(store: SharedStore) -> NodeBuilder {
        NodeBuilder::new(store)
    }

    /// A lease to be held once, while a future runs. A bad name is an error when the lease is used.
    pub fn lease<N>(&self, name: N) -> Lease
    where
        N: TryInto<LeaseName>,
        N::Error: Into<NameError>,
    {
        Lease::new(self.clone(), name.try_into().map_err(Into::into))
    }

    /// An election: this replica wants to lead from now on. A bad name is an error when the election is started.
    pub fn election<N>(&self, name: N) -> ElectionBuilder
    where
        N: TryInto<LeaseName>,
        N::Error: Into<NameError>,
    {
        ElectionBuilder::new(self.clone(), name.try_into().map_err(Into::into))
    }

    /// This replica.
    #[must_use]
    pub fn replica(&self) -> &ReplicaId {
        &self.seat.ctx.replica
    }

    /// The store, for looking and for tools.
    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.seat.ctx.store
    }

    pub(crate) fn context(&self) -> &Context {
        &self.seat.ctx
    }

    /// Starts an actor below the root, on our own runtime.
    pub(crate) async fn spawn<A>(&self, actor: A, args: A::Arguments) -> Result<ActorRef<A::Msg>, StartError>
    where
        A: Actor,
    {
        if self.seat.members.closed.load(Ordering::SeqCst) {
            return Err(StartError::Stopped);
        }
        let root = self.seat.root.get_cell();
        let (tell, told) = oneshot::channel();
        self.seat.ctx.own.spawn(async move {
            let spawned = Actor::spawn_linked(None, actor, args, root).await;
            let _ = tell.send(spawned.map(|(actor, _)| Unclaimed::new(actor)));
        });
        match told.await {
            Ok(Ok(actor)) => Ok(actor.claim()),
            Ok(Err(_)) => Err(StartError::Stopped),
            Err(_) => Err(StartError::NoRuntime),
        }
    }

    /// Remembers how to stop a member, for the shutdown.
    pub(crate) fn enrol(&self, cell: ActorCell, stop: impl Fn(Duration) + Send + Sync + 'static) {
        let mut members = self.seat.members.list();
        members.retain(Member::is_alive);
        members.push(Member { cell, stop: Arc::new(stop) });
    }

    /// Ends everything, in order: workers are asked to quiesce and joined, leases released, candidacies withdrawn, and
    /// the last calls to the store awaited. Takes at most `within`; what has not ended by then is killed, and its leases
    /// expire. Elections and leases of this node end with it.
    ///
    /// A quarter of the time, at most 2 s, is kept for joining and releasing; the rest is the workers' to quiesce.
    ///
    /// Dropping the future stops nothing: the shutdown goes on in the background.
    pub async fn shutdown(&self, within: Duration) -> Stopped {
        let stopping = self.seat.ctx.own.spawn(stop::stop(self.seat.parts(), within));
        // A panic in there would be a bug of ours; the root is then killed by its drop, and nothing is confirmed.
        stopping.await.unwrap_or(Stopped::Killed)
    }
}

/// An actor on its way to whoever asked for it. One that has gone meanwhile could never stop it.
struct Unclaimed<M: ractor::Message>(Option<ActorRef<M>>);

impl<M: ractor::Message> Unclaimed<M> {
    const fn new(actor: ActorRef<M>) -> Self {
        Self(Some(actor))
    }

    fn claim(mut self) -> ActorRef<M> {
        #[allow(clippy::expect_used, reason = "taken here only, and by value")]
        self.0.take().expect("claimed once")
    }
}

impl<M: ractor::Message> Drop for Unclaimed<M> {
    fn drop(&mut self) {
        if let Some(actor) = &self.0 {
            actor.stop(None);
        }
    }
}

impl Member {
    fn is_alive(&self) -> bool {
        self.cell.get_status() != ractor::ActorStatus::Stopped
    }
}

impl Members {
    /// Those that have not ended yet. Shared, not taken: two shutdowns at once both wait for all of them.
    fn alive(&self) -> Vec<Member> {
        self.list().iter().filter(|member| member.is_alive()).cloned().collect()
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Member>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    fn parts(&self) -> stop::Parts {
        self.members.closed.store(true, Ordering::SeqCst);
        stop::Parts { ctx: self.ctx.clone(), root: self.root.clone(), members: self.members.clone() }
    }
}

/// How long a node that was dropped may take to end.
const DROPPED_WITHIN: Duration = Duration::from_secs(5);

impl Drop for Seat {
    fn drop(&mut self) {
        if self.root.get_status() < ractor::ActorStatus::Stopping {
            let parts = self.parts();
            drop(self.ctx.own.spawn(stop::stop(parts, DROPPED_WITHIN)));
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({} on {})", self.replica(), self.store().address())
    }
}
