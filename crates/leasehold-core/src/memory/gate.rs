//! Fence marks, and the gates that keep writers apart.

use crate::{Admit, Fence, LeaseName, ResourceName, Stale, StoreError, StoreErrorKind, Verb};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::Mutex;

/// The marks of the memory store, by resource and lease. They live as long as the store: a mark that is forgotten
/// is a stale write let in (invariant I1).
#[derive(Debug, Default)]
pub(super) struct Gates {
    marks: HashMap<(ResourceName, LeaseName), Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    highest: Option<Fence>,
    // Tokio's mutex is first come, first served, and a waiter that is dropped leaves the queue.
    door: Arc<Mutex<()>>,
}

impl Gates {
    /// Accepts `fence`, or says why not. `issued` is the highest fence of the lease.
    pub(super) fn admit(
        &mut self,
        resource: &ResourceName,
        lease: &LeaseName,
        fence: Fence,
        issued: Option<Fence>,
    ) -> Admit {
        if issued.is_none_or(|issued| fence > issued) {
            let kind = StoreErrorKind::NeverIssued { fence, highest: issued, resource: resource.clone() };
            return Admit::Refused(StoreError::new(kind, Verb::CheckFence, super::ADDRESS).on(lease));
        }
        let gate = self.marks.entry((resource.clone(), lease.clone())).or_default();
        match gate.highest {
            Some(highest) if fence < highest => Admit::Stale(Stale { presented: fence, highest }),
            _ => {
                gate.highest = Some(fence);
                Admit::Accepted
            }
        }
    }

    /// The door of a gate.
    pub(super) fn door(&mut self, resource: &ResourceName, lease: &LeaseName) -> Arc<Mutex<()>> {
        self.marks.entry((resource.clone(), lease.clone())).or_default().door.clone()
    }
}
