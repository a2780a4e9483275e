//! The watcher subscribes to leases, once a name for the whole process, and tells whoever waits.

use crate::{calls::bounded, reply::Reply, seed, telemetry};
use leasehold_core::{
    LeaseName, LeaseRecord, LeaseState, Scope, SharedStore, Sighting, StoreError, Verb, Watch,
    backoff::Backoff,
};
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
        Ok(Subscriptions { store, names: HashMap::new() })
    }

    async fn handle(
        &self,
        me: ActorRef<WatcherMsg>,
        msg: WatcherMsg,
        state: &mut Subscriptions,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            WatcherMsg::Subscribe { id, name, ear } => {
                let Subscriptions { store, names } = state;
                let subscription = names.entry(name.clone()).or_insert_with(|| Subscription {
                    ears: HashMap::new(),
                    last: None,
                    listener: listen(store.clone(), name, me),
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
            WatcherMsg::Close { done } => {
                state.names.clear();
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
        state.names.clear();
        Ok(())
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

/// The longest that the opening of a watch is waited for.
const OPENING: Duration = Duration::from_secs(10);

/// Keeps one subscription open for as long as it runs.
fn listen(store: SharedStore, name: LeaseName, me: ActorRef<WatcherMsg>) -> AbortHandle {
    let task = tokio::spawn(async move {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5), seed::fresh());
        loop {
            let opened = bounded(OPENING, || store.watch(Scope::Names(vec![name.clone()]))).await;
            match opened.unwrap_or_else(|fault| Err(fault.error(Verb::Watch, &*store))) {
                Ok(watch) => {
                    backoff.reset();
                    if forward(watch, &name, &me).await.is_err() {
                        return;
                    }
                }
                Err(error) => telemetry::watch_troubled(&name, &error),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    });
    task.abort_handle()
}

/// Forwards sightings until the store closes the watch; `Err` once nobody listens.
async fn forward(mut watch: Watch, name: &LeaseName, me: &ActorRef<WatcherMsg>) -> Result<(), ()> {
    let mut told: Option<StoreError> = None;
    while let Some(sighting) = watch.next().await {
        match sighting {
            Sighting::State(record) => {
                told = None;
                me.cast(WatcherMsg::Sighted { name: name.clone(), record }).map_err(drop)?;
            }
            // Once for each kind of trouble, not once for each try.
            Sighting::Trouble(error) if told.as_ref() != Some(&error) => {
                telemetry::watch_troubled(name, &error);
                told = Some(error);
            }
            Sighting::Trouble(_) => {}
        }
    }
    Ok(())
}
