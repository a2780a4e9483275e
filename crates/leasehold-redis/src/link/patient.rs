//! Connections for requests that keep a connection waiting: behind a `WAIT` the server lets everything else wait as well.

use super::{Shared, way::Way};
use crate::error::Fault;
use leasehold_core::StoreErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::{
    runtime::{Handle, Id},
    sync::oneshot,
};

/// How many are kept when nobody uses them.
const KEPT: usize = 4;

/// The ones that nobody uses just now, each with the runtime it lives on.
#[derive(Default)]
pub(super) struct Patient {
    // A std mutex: held to take and to put, never over an await.
    idle: Mutex<Vec<(Id, Way)>>,
}

impl Patient {
    fn take(&self) -> Option<Way> {
        let here = Handle::current().id();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|(on, _)| *on == here)?;
        Some(idle.swap_remove(at).1)
    }

    /// Keeps one that is as good as before.
    pub(super) fn put(&self, way: Way) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push((Handle::current().id(), way));
        }
    }
}

/// One that nobody else uses, and whether it was idle before: then its server may have closed it. Cancel safe: one that is
/// being made is kept for the next.
pub(super) async fn take(shared: &Arc<Shared>) -> Result<(Way, bool), Fault> {
    if let Some(way) = shared.patient.take() {
        return Ok((way, true));
    }
    let (give, given) = oneshot::channel();
    let maker = shared.clone();
    tokio::spawn(async move {
        let connected = maker.route.connect(&maker.config).await;
        if let Err(Ok(way)) = give.send(connected) {
            maker.patient.put(way);
        }
    });
    Ok((given.await.unwrap_or_else(|_| Err(StoreErrorKind::Unreachable.into()))?, false))
}
