//! What can put a worker to work, without the rest of the crate knowing its type.

use super::{Notice, Worker};
use crate::{telemetry, term::Term};
use ractor::{Actor, ActorCell, ActorRef, ActorRuntime, SpawnErr};
use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tokio::{runtime::Handle, task::JoinHandle};

/// Puts a worker to work for one term.
pub(crate) trait Crew: Send + Sync + 'static {
    /// Starts a worker as the renewer's child on the `app` runtime. Returns before its `pre_start` has run, so that a
    /// slow start holds up no renewal.
    fn muster(&self, term: Term, renewer: ActorCell, app: &Handle) -> Result<Mustered, SpawnErr>;
}

/// Resolves once the actor's `pre_start` has ended; what it yields resolves once the actor has.
pub(crate) type Starting = JoinHandle<Result<JoinHandle<()>, SpawnErr>>;

/// A worker that was started.
pub(crate) struct Mustered {
    pub(crate) cell: ActorCell,
    pub(crate) join: Starting,
    pub(crate) tell: Arc<dyn Fn(Notice) + Send + Sync>,
}

/// Starts an actor on `app`: its `pre_start` and its loop run there, whoever calls.
pub(super) fn start<A: Actor>(
    actor: A,
    args: A::Arguments,
    renewer: ActorCell,
    app: &Handle,
) -> Result<(ActorRef<A::Msg>, Starting), SpawnErr> {
    let _on_app = app.enter();
    ActorRuntime::spawn_linked_instant(None, actor, args, renewer)
}

/// Starts a user's actor for each term.
pub(crate) struct ActorCrew<W, F> {
    make: F,
    worker: PhantomData<fn() -> W>,
}

impl<W, F> ActorCrew<W, F> {
    pub(crate) const fn new(make: F) -> Self {
        Self { make, worker: PhantomData }
    }
}

impl<W, F> Crew for ActorCrew<W, F>
where
    W: Worker,
    F: Fn(Term) -> (W, W::Arguments) + Send + Sync + 'static,
{
    fn muster(&self, term: Term, renewer: ActorCell, app: &Handle) -> Result<Mustered, SpawnErr> {
        let making = {
            // What it spawns, it spawns where the worker will run.
            let _on_app = app.enter();
            catch_unwind(AssertUnwindSafe(|| (self.make)(term.clone())))
        };
        // Its panic is the worker's failure: the renewer must not take it for its own.
        let (worker, args) = making.map_err(|_| SpawnErr::StartupFailed(Box::new(MakingPanicked)))?;
        let (actor, join) = start(worker, args, renewer, app)?;
        let cell = actor.get_cell();
        let tell = move |notice| {
            if let Ok(msg) = catch_unwind(AssertUnwindSafe(|| W::notice(notice))) {
                let _ = actor.cast(msg);
            } else {
                telemetry::notice_panicked(term.grant().claim());
            }
        };
        Ok(Mustered { cell, join, tell: Arc::new(tell) })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the closure that makes the worker panicked")]
struct MakingPanicked;
