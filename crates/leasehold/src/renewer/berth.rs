//! Where the worker's handle is kept, and the leash that ends it.

use crate::term::Scope;
use leasehold_core::LostCause;
use ractor::ActorCell;
use std::sync::{Arc, OnceLock};

/// The worker's handle, shared by its renewer and its holder. Set at most once, before the renewer first gives way.
#[derive(Default)]
pub(crate) struct Berth(OnceLock<Option<ActorCell>>);

impl Berth {
    /// Whether a worker was mustered: then, and only then, its end will be reported.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.get().is_some()
    }

    /// Ends the worker at its next await, also while it is still starting. Allowed whenever its term or its time to
    /// quiesce is over (I4, I5).
    pub(crate) fn kill(&self) {
        if let Some(Some(worker)) = self.0.get() {
            worker.kill();
        }
    }
}

/// Ends the worker when it is dropped.
///
/// ractor kills an actor's children with it, but a child is linked only after its `pre_start`, and a stopping child is
/// exempt. The leash closes both gaps.
pub(crate) struct Leash {
    berth: Arc<Berth>,
    scope: Arc<Scope>,
}

impl Leash {
    pub(crate) const fn new(berth: Arc<Berth>, scope: Arc<Scope>) -> Self {
        Self { berth, scope }
    }

    pub(crate) fn put_on(&self, worker: ActorCell) {
        let _ = self.berth.0.set(Some(worker));
    }

    pub(crate) fn put_on_nobody(&self) {
        let _ = self.berth.0.set(None);
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // After an orderly end the cause stands already, and the worker has ended: both are then without effect.
        self.scope.grant.end(LostCause::RenewerEnded);
        self.scope.abort_tasks();
        self.berth.kill();
    }
}
