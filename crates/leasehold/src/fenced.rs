//! A resource behind a fence.

use crate::{context::Context, error::StartError, event::Happening, node::Node};
use leasehold_core::{Fence, LeaseName, NameError, ResourceName, Stale};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{fmt, marker::PhantomData};
use tokio::sync::oneshot;

/// A value in an actor that remembers the highest fence it accepted, and refuses lower ones (I1).
///
/// For resources that live in this process: a connection to something that takes one writer, a file, a cache. All
/// fences presented must come from one lease, for the fences of two leases have no common order. What the process
/// itself forgets when it ends, the fence mark included, this cannot guard: then the resource itself must compare.
/// A resource that remembers its mark by other means can restore it with an empty write at the start.
///
/// Cheap to clone; clones are the same resource.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use leasehold::{Fence, FencedError, Node};
/// # let node = Node::connect("memory:").await?;
/// let ledger = node.fenced("ledger", "invoice-run", Vec::new()).await?;
/// ledger.write(Fence::new(2)?, |lines| lines.push("by the new holder")).await?;
/// let late = ledger.write(Fence::new(1)?, |lines| lines.push("by one who woke up too late")).await;
/// assert!(matches!(late, Err(FencedError::Stale(stale)) if stale.highest == Fence::new(2)?));
/// # Ok(())
/// # }
/// ```
pub struct Fenced<R> {
    actor: ActorRef<FencedMsg<R>>,
}

/// A write that was not carried out. The resource is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FencedError {
    /// The fence is lower than one that was accepted: the writer's term is over. A holder that is told so although it
    /// holds the lease tells [`Term::outranked`](crate::Term::outranked), and the system heals.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The fence is absurdly far above the highest accepted: accepting it would shut everyone out for good.
    #[error(transparent)]
    Stray(#[from] Stray),
    /// The resource's actor has ended: its node was stopped, or an earlier write panicked.
    #[error("the resource's actor has ended, since its node was stopped or a write panicked")]
    Ended,
}

/// A fence too far above the highest one accepted to have been issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "fence {presented} is more than {max_jump} above {highest:?}, the highest accepted: it was hardly issued; nothing was changed"
)]
pub struct Stray {
    /// What was presented.
    pub presented: Fence,
    /// The highest that was accepted, if any was.
    pub highest: Option<Fence>,
    /// The largest step that is accepted.
    pub max_jump: u64,
}

/// Far above what any lease issues between two writes, far below what would exhaust the counter.
pub(crate) const MAX_JUMP: u64 = 1 << 32;

type Write<R> = Box<dyn FnOnce(Result<&mut R, FencedError>) + Send>;

/// One write: the fence, and what to do with the resource or with the refusal.
pub(crate) struct FencedMsg<R> {
    fence: Fence,
    write: Write<R>,
}

#[cfg(feature = "cluster")]
impl<R: Send + 'static> ractor::Message for FencedMsg<R> {}

struct FencedActor<R>(PhantomData<fn() -> R>);

struct Guarded<R> {
    ctx: Context,
    name: ResourceName,
    lease: LeaseName,
    resource: R,
    highest: Option<Fence>,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl<R: Send + 'static> Actor for FencedActor<R> {
    type Msg = FencedMsg<R>;
    type State = Guarded<R>;
    type Arguments = Guarded<R>;

    async fn pre_start(
        &self,
        _: ActorRef<FencedMsg<R>>,
        guarded: Guarded<R>,
    ) -> Result<Guarded<R>, ActorProcessingErr> {
        Ok(guarded)
    }

    async fn handle(
        &self,
        _: ActorRef<FencedMsg<R>>,
        FencedMsg { fence, write }: FencedMsg<R>,
        guarded: &mut Guarded<R>,
    ) -> Result<(), ActorProcessingErr> {
        match guarded.admit(fence) {
            Ok(()) => write(Ok(&mut guarded.resource)),
            Err(refusal) => write(Err(refusal)),
        }
        Ok(())
    }
}

impl<R> Guarded<R> {
    fn admit(&mut self, presented: Fence) -> Result<(), FencedError> {
        match self.highest {
            Some(highest) if presented < highest => {
                let stale = Stale { presented, highest };
                let resource = self.name.as_str().into();
                self.ctx.events.tell(
                    &self.lease,
                    Some(presented),
                    Happening::StaleRefused { resource, stale },
                );
                return Err(stale.into());
            }
            Some(highest) if presented.get() - highest.get() > MAX_JUMP => {
                return Err(Stray { presented, highest: Some(highest), max_jump: MAX_JUMP }.into());
            }
            _ => {}
        }
        self.highest = Some(presented);
        Ok(())
    }
}

impl<R: Send + 'static> Fenced<R> {
    /// Carries out `write` if `fence` is at least as high as every fence accepted before, and remembers it.
    ///
    /// Writes are carried out one after another; `write` must not block for long. It is carried out even if the
    /// returned future is dropped. If it panics, the resource is gone.
    ///
    /// # Errors
    /// [`FencedError`]; nothing was changed.
    pub async fn write<T: Send + 'static>(
        &self,
        fence: impl Into<Fence>,
        write: impl FnOnce(&mut R) -> T + Send + 'static,
    ) -> Result<T, FencedError> {
        let (answer, answered) = oneshot::channel();
        let write: Write<R> = Box::new(move |resource| drop(answer.send(resource.map(write))));
        self.actor.cast(FencedMsg { fence: fence.into(), write }).map_err(|_| FencedError::Ended)?;
        answered.await.map_err(|_| FencedError::Ended)?
    }
}

impl Node {
    /// Puts a value behind a fence that is raised by the terms of `lease`. The actor lives as long as the node.
    ///
    /// # Errors
    /// [`StartError`] for a bad name, or if the node was stopped.
    pub async fn fenced<R, N, L>(&self, name: N, lease: L, resource: R) -> Result<Fenced<R>, StartError>
    where
        R: Send + 'static,
        N: TryInto<ResourceName>,
        N::Error: Into<NameError>,
        L: TryInto<LeaseName>,
        L::Error: Into<NameError>,
    {
        let name = name.try_into().map_err(Into::into)?;
        let lease = lease.try_into().map_err(Into::into)?;
        let guarded = Guarded { ctx: self.context().clone(), name, lease, resource, highest: None };
        let actor = self.spawn(FencedActor(PhantomData), guarded).await?;
        Ok(Fenced { actor })
    }
}

impl<R> Clone for Fenced<R> {
    fn clone(&self) -> Self {
        Self { actor: self.actor.clone() }
    }
}

impl<R> fmt::Debug for Fenced<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fenced")
    }
}
