//! The leases that this process holds: one subscription for all of them, however many they are.
//!
//! A holder learns from its next renewal that its claim is over. What the store tells in between comes here, and has it
//! renew at once. It only saves time: whatever is not told is learned by the renewal.

use super::{WatcherMsg, listen::listen};
use crate::holder::HolderMsg;
use leasehold_core::{AttemptId, Claim, Fence, LeaseName, LeaseRecord, NameSet, Scope, SharedStore};
use ractor::ActorRef;
use std::collections::HashMap;
use tokio::task::AbortHandle;

#[derive(Default)]
pub(super) struct Holdings {
    held: HashMap<LeaseName, Holding>,
    // The same names, as the store follows them.
    names: NameSet,
    // From the first lease that is held on.
    listener: Option<AbortHandle>,
}

/// A term, as far as a sighting can concern it. Little, for there may be ten thousand.
struct Holding {
    fence: Fence,
    attempt: AttemptId,
    holder: ActorRef<HolderMsg>,
}

impl Holdings {
    pub(super) fn add(
        &mut self,
        claim: Claim,
        holder: ActorRef<HolderMsg>,
        store: &SharedStore,
        me: &ActorRef<WatcherMsg>,
    ) {
        let Claim { name, fence, attempt, .. } = claim;
        self.names.insert(name.clone());
        let earlier = self.held.insert(name, Holding { fence, attempt, holder });
        if let Some(earlier) = earlier {
            // Of this process, too, and its lease has been granted again.
            earlier.doubt(None);
        }
        self.listener.get_or_insert_with(|| {
            listen(store.clone(), Scope::Live(self.names.clone()), me.clone(), WatcherMsg::SightedHeld)
        });
    }

    pub(super) fn remove(&mut self, name: &LeaseName, attempt: AttemptId) {
        // A later term of this process may have taken the place.
        if self.held.get(name).is_some_and(|holding| holding.attempt == attempt) {
            self.held.remove(name);
            self.names.remove(name);
        }
    }

    pub(super) fn sighted(&self, record: &LeaseRecord) {
        if let Some(holding) = self.held.get(&record.name).filter(|holding| holding.is_doubted_by(record)) {
            holding.doubt(Some(record));
        }
    }

    /// Ends the subscription; nothing is told any more.
    pub(super) fn close(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
        self.held.clear();
    }
}

impl Holding {
    /// Whether the record shows anything but this claim, unless it is older than the claim: it comes from before.
    fn is_doubted_by(&self, record: &LeaseRecord) -> bool {
        let is_same = record.claim().is_some_and(|claim| claim.attempt == self.attempt);
        let is_older = record.counter.is_some_and(|counter| counter < self.fence);
        !is_same && !is_older
    }

    fn doubt(&self, record: Option<&LeaseRecord>) {
        let _ = self.holder.cast(HolderMsg::Doubted(record.cloned().map(Box::new)));
    }
}

impl Drop for Holdings {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::{LeaseState, ReplicaId};
    use ractor::{Actor, ActorProcessingErr};
    use std::time::Duration;

    struct Nobody;

    #[cfg_attr(feature = "async-trait", ractor::async_trait)]
    impl Actor for Nobody {
        type Msg = HolderMsg;
        type State = ();
        type Arguments = ();
        async fn pre_start(&self, _: ActorRef<HolderMsg>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }
    }

    fn record(counter: Option<u64>, state: LeaseState) -> LeaseRecord {
        let counter = counter.map(|counter| Fence::new(counter).unwrap());
        LeaseRecord { counter, state, ..LeaseRecord::unknown(LeaseName::new("l").unwrap()) }
    }

    fn held(fence: u64, attempt: u8) -> LeaseRecord {
        let claim = Claim {
            name: LeaseName::new("l").unwrap(),
            replica: ReplicaId::new("a").unwrap(),
            attempt: AttemptId::from_bytes([attempt; 16]),
            fence: Fence::new(fence).unwrap(),
        };
        let (remaining, held_for) = (Duration::ZERO, Duration::ZERO);
        record(Some(fence), LeaseState::Held { claim, remaining, held_for, crash_witness: false })
    }

    #[tokio::test]
    async fn what_is_not_our_claim_casts_doubt_unless_it_is_older() {
        let (holder, _) = Actor::spawn(None, Nobody, ()).await.unwrap();
        let (fence, attempt) = (Fence::new(7).unwrap(), AttemptId::from_bytes([1; 16]));
        let holding = Holding { fence, attempt, holder };
        let heir = || LeaseState::Reserved { heir: ReplicaId::new("b").unwrap(), remaining: Duration::ZERO };
        for (doubtful, seen) in [
            (false, held(7, 1)),
            (true, held(8, 2)),
            // The store lost its counter, and issued the number again.
            (true, held(7, 2)),
            (true, record(Some(7), LeaseState::Vacant)),
            (true, record(Some(7), heir())),
            (true, record(Some(9), LeaseState::Vacant)),
            (true, record(None, LeaseState::Vacant)),
            (false, held(6, 2)),
            (false, record(Some(6), LeaseState::Vacant)),
            (false, record(Some(6), heir())),
        ] {
            assert_eq!(holding.is_doubted_by(&seen), doubtful, "{seen:?}");
        }
        holding.holder.stop(None);
    }
}
