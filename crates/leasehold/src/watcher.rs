//! The watcher subscribes to leases: once for each name that somebody waits for, and once for all that this process holds.

mod holdings;
mod listen;

use crate::{holder::HolderMsg, reply::Reply};
use holdings::Holdings;
use leasehold_core::{AttemptId, Claim, LeaseName, LeaseRecord, LeaseState, Scope, SharedStore};
use listen::listen;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{collections::HashMap, fmt, time::Duration};
use tokio::{task::AbortHandle, time::Instant};

/// Tells one subscriber a state.
pub(crate) struct Ear(Box<dyn Fn(LeaseRecord) + Send>);

impl Ear {
    pub(crate) fn new(tell: impl Fn(LeaseRecord) + Send + 'static) -> Self {
        Self(Box::new(tell))
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ear")
    }
}

#[derive(Debug)]
pub(crate) enum WatcherMsg {
    /// Tell this subscriber of this lease from now on, beginning with the present state.
    Subscribe {
        id: u64,
        name: LeaseName,
        ear: Ear,
    },
    Unsubscribe {
        id: u64,
        name: LeaseName,
    },
    Sighted {
        name: LeaseName,
        record: LeaseRecord,
    },
    /// Tell this holder, from now on, when its lease is seen in a state that is not its claim.
    Hold {
        claim: Claim,
        holder: ActorRef<HolderMsg>,
    },
    LetGo {
        name: LeaseName,
        attempt: AttemptId,
    },
    /// A lease that is held here was seen.
    SightedHeld(LeaseRecord),
    Close {
        done: Reply<()>,
    },
}

#[cfg(feature = "cluster")]
impl ractor::Message for WatcherMsg {}

pub(crate) struct Watcher;

pub(crate) struct Subscriptions {
    store: SharedStore,
    names: HashMap<LeaseName, Subscription>,
    holdings: Holdings,
}

struct Subscription {
    ears: HashMap<u64, Ear>,
    // For whoever subscribes later: without it, what happened before would never be told (B98). And when it was seen:
    // renewals are not told, so what was left then says little by now.
    last: Option<(LeaseRecord, Instant)>,
    listener: AbortHandle,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Watcher {
    type Msg = WatcherMsg;
    type State = Subscriptions;
    type Arguments = SharedStore;

    async fn pre_start(
        &self,
        _: ActorRef<WatcherMsg>,
        store: SharedStore,
    ) -> Result<Subscriptions, ActorProcessingErr> {
        Ok(Subscriptions { store, names: HashMap::new(), holdings: Holdings::default() })
    }

    async fn handle(
        &self,
        me: ActorRef<WatcherMsg>,
        msg: WatcherMsg,
        state: &mut Subscriptions,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            WatcherMsg::Subscribe { id, name, ear } => {
                let Subscriptions { store, names, .. } = state;
                let subscription = names.entry(name.clone()).or_insert_with(|| Subscription {
                    ears: HashMap::new(),
                    last: None,
                    listener: listen(store.clone(), Scope::Names(vec![name.clone()]), me, move |record| {
                        WatcherMsg::Sighted { name: name.clone(), record }
                    }),
                });
                if let Some((record, seen)) = &subscription.last {
                    ear.0(aged(record, seen.elapsed()));
                }
                subscription.ears.insert(id, ear);
            }
            WatcherMsg::Unsubscribe { id, name } => {
                if let Some(subscription) = state.names.get_mut(&name) {
                    subscription.ears.remove(&id);
                    if subscription.ears.is_empty() {
                        state.names.remove(&name);
                    }
                }
            }
            WatcherMsg::Sighted { name, record } => {
                if let Some(subscription) = state.names.get_mut(&name) {
                    subscription.ears.values().for_each(|ear| ear.0(record.clone()));
                    subscription.last = Some((record, Instant::now()));
                }
            }
            WatcherMsg::Hold { claim, holder } => state.holdings.add(claim, holder, &state.store, &me),
            WatcherMsg::LetGo { name, attempt } => state.holdings.remove(&name, attempt),
            WatcherMsg::SightedHeld(record) => state.holdings.sighted(&record),
            WatcherMsg::Close { done } => {
                state.clear();
                done.send(());
            }
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<WatcherMsg>,
        state: &mut Subscriptions,
    ) -> Result<(), ActorProcessingErr> {
        state.clear();
        Ok(())
    }
}

impl Subscriptions {
    fn clear(&mut self) {
        self.names.clear();
        self.holdings.close();
    }
}

/// What is known of a lease that was seen so long ago.
fn aged(record: &LeaseRecord, by: Duration) -> LeaseRecord {
    let mut record = record.clone();
    if let LeaseState::Held { remaining, .. } | LeaseState::Reserved { remaining, .. } = &mut record.state {
        *remaining = remaining.saturating_sub(by);
    }
    record
}
