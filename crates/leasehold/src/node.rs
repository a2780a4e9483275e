//! The node: one replica's presence at one store, and the root of its supervision tree.

mod builder;
mod members;
mod root;
mod stop;

pub use builder::NodeBuilder;
pub use stop::Stopped;

use crate::{context::Context, election::ElectionBuilder, error::StartError, lease::Lease};
use leasehold_core::{LeaseName, NameError, ReplicaId, SharedStore};
use members::{Member, Members, Place};
use ractor::{Actor, ActorRef};
use root::RootMsg;
use std::{fmt, sync::Arc, time::Duration};
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
    members: Members,
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

    /// Starts an actor below the root, on our own runtime. It ends with the root; a shutdown does not stop it before, for
    /// the members may need it to the last.
    pub(crate) async fn spawn<A>(&self, actor: A, args: A::Arguments) -> Result<ActorRef<A::Msg>, StartError>
    where
        A: Actor,
    {
        self.launch(actor, args, |_, place| drop(place)).await
    }

    /// Starts an actor that a shutdown must stop, and wait for. One that begins meanwhile waits for the start, and stops
    /// what was started, even if whoever wanted it has gone.
    pub(crate) async fn enrol<A>(
        &self,
        actor: A,
        args: A::Arguments,
        stop: impl Fn(&ActorRef<A::Msg>, Duration) + Send + Sync + 'static,
    ) -> Result<ActorRef<A::Msg>, StartError>
    where
        A: Actor,
    {
        self.launch(actor, args, |actor: &ActorRef<A::Msg>, place| {
            let (cell, actor) = (actor.get_cell(), actor.clone());
            place.fill(Member { cell, stop: Arc::new(move |within| stop(&actor, within)) });
        })
        .await
    }

    async fn launch<A>(
        &self,
        actor: A,
        args: A::Arguments,
        seat: impl FnOnce(&ActorRef<A::Msg>, Place) + Send + 'static,
    ) -> Result<ActorRef<A::Msg>, StartError>
    where
        A: Actor,
    {
        let Some(place) = self.seat.members.place() else { return Err(StartError::Stopped) };
        let root = self.seat.root.get_cell();
        let (tell, told) = oneshot::channel();
        self.seat.ctx.own.spawn(async move {
            let spawned = Actor::spawn_linked(None, actor, args, root).await;
            if let Ok((actor, _)) = &spawned {
                seat(actor, place);
            }
            let _ = tell.send(spawned.map(|(actor, _)| Unclaimed::new(actor)));
        });
        match told.await {
            Ok(Ok(actor)) => Ok(actor.claim()),
            Ok(Err(_)) => Err(StartError::Stopped),
            Err(_) => Err(StartError::NoRuntime),
        }
    }

    /// Resolves when the node has ended, for whatever reason: its [shutdown](Node::shutdown), the drop of its last
    /// handle, or, unasked, the failure of one of the actors that talk to the store, without which nothing could be
    /// renewed or released any more. A program that runs on without its node leads nothing: it should end, or start
    /// another node.
    ///
    /// By then every worker has been dropped or killed, or will be at its next `.await`; one that blocks its thread may
    /// still be running. Leases that were not released expire within their ttl. Resolves at once if the node has ended
    /// already. Does not keep the node alive.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let root = self.seat.root.get_cell();
        async move {
            let _ = root.wait(None).await;
        }
    }

    /// Ends everything, in order: workers are asked to quiesce and joined, leases released, candidacies withdrawn, and
    /// the last calls to the store awaited. Takes at most `within`; what has not ended by then is killed, and its leases
    /// expire. Elections and leases of this node end with it.
    ///
    /// A quarter of the time, at most 2 s, is kept for joining and releasing; the rest is the workers' to quiesce. A release
    /// that the store does not confirm, of now or of before, is repeated while time is left and the trouble is of a kind
    /// that passes by itself; with a store that is out of reach, a shutdown may therefore take all of its time. A bid
    /// whose outcome is unknown, and that nobody wants any more, is looked for again up to a quarter of a second after it
    /// was given up: one that arrives at the store even later is held by nobody until it expires.
    ///
    /// The outcome is that of the node: shutdowns at the same time, and later ones, return the same. It is
    /// [`Stopped::Killed`] if the node had [ended](Node::stopped) by itself.
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

impl Seat {
    fn parts(&self) -> stop::Parts {
        let first = self.members.close();
        stop::Parts { ctx: self.ctx.clone(), root: self.root.clone(), members: self.members.clone(), first }
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
