//! Calls to the store: one, bounded in time, and all that an actor has under way.

use crate::reply::OnDrop;
use leasehold_core::{StoreError, StoreErrorKind, Verb};
use std::{panic::AssertUnwindSafe, time::Duration};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::timeout,
};

/// The calls that an actor has under way, each in a task of its own. Dropping it aborts them.
#[derive(Default)]
pub(crate) struct Calls {
    tasks: JoinSet<()>,
    // Counted by hand: a task that said it ended may not have been reaped yet, and one that did not may be the last.
    under_way: usize,
}

impl Calls {
    /// Starts a call. `tell` is called at its end, whatever ended it, and has the actor call [`Calls::one_ended`].
    pub(crate) fn start(
        &mut self,
        call: impl Future<Output = ()> + Send + 'static,
        tell: impl FnMut() + Send + 'static,
    ) -> AbortHandle {
        self.under_way += 1;
        let ended = OnDrop(tell);
        self.tasks.spawn(async move {
            let _ended = ended;
            call.await;
        })
    }

    /// One that was started has ended.
    pub(crate) fn one_ended(&mut self) {
        self.under_way -= 1;
        while self.tasks.try_join_next().is_some() {}
    }

    pub(crate) const fn are_over(&self) -> bool {
        self.under_way == 0
    }

    pub(crate) fn abort(&mut self) {
        self.tasks.abort_all();
    }
}

/// Why a call to the store gave no answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Silent(Duration),
    Panicked,
}

impl Fault {
    pub(crate) fn error(self, verb: Verb, store: &dyn leasehold_core::Store) -> StoreError {
        let kind = match self {
            Self::Silent(within) => StoreErrorKind::TimedOut(within),
            Self::Panicked => StoreErrorKind::Other,
        };
        let error = StoreError::new(kind, verb, store.address());
        match self {
            Self::Silent(_) => error,
            Self::Panicked => error.because(StorePanicked),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the store's code panicked, or broke its contract; this is a bug in it")]
struct StorePanicked;

/// One call, bounded in time, with a panic of the store's code caught: the renewer must get its answer.
pub(crate) async fn bounded<T, F>(within: Duration, call: impl FnOnce() -> F) -> Result<T, Fault>
where
    F: Future<Output = T>,
{
    // The call is made inside: a store may panic before it has made its future.
    let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(async { call().await }));
    match timeout(within, caught).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(Fault::Panicked),
        Err(_) => Err(Fault::Silent(within)),
    }
}
