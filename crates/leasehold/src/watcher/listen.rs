//! Keeping a subscription open.

use super::WatcherMsg;
use crate::{calls::bounded, seed, telemetry};
use leasehold_core::{LeaseRecord, Scope, SharedStore, Sighting, StoreError, Verb, Watch, backoff::Backoff};
use ractor::ActorRef;
use std::time::Duration;
use tokio::task::AbortHandle;

/// The longest that the opening of a watch is waited for.
const OPENING: Duration = Duration::from_secs(10);

/// Keeps one subscription open for as long as it runs, and tells `me` what it shows.
pub(super) fn listen(
    store: SharedStore,
    scope: Scope,
    me: ActorRef<WatcherMsg>,
    tell: impl Fn(LeaseRecord) -> WatcherMsg + Send + Sync + 'static,
) -> AbortHandle {
    let task = tokio::spawn(async move {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5), seed::fresh());
        loop {
            let opened = bounded(OPENING, || store.watch(scope.clone())).await;
            match opened.unwrap_or_else(|fault| Err(fault.error(Verb::Watch, &*store))) {
                Ok(watch) => {
                    backoff.reset();
                    if forward(watch, &scope, &me, &tell).await.is_err() {
                        return;
                    }
                }
                Err(error) => telemetry::watch_troubled(&scope, &error),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    });
    task.abort_handle()
}

/// Forwards sightings until the store closes the watch; `Err` once nobody listens.
async fn forward(
    mut watch: Watch,
    scope: &Scope,
    me: &ActorRef<WatcherMsg>,
    tell: &(impl Fn(LeaseRecord) -> WatcherMsg + Sync),
) -> Result<(), ()> {
    let mut told: Option<StoreError> = None;
    while let Some(sighting) = watch.next().await {
        match sighting {
            Sighting::State(record) => {
                told = None;
                me.cast(tell(record)).map_err(drop)?;
            }
            // Once for each kind of trouble, not once for each try.
            Sighting::Trouble(error) if told.as_ref() != Some(&error) => {
                telemetry::watch_troubled(scope, &error);
                told = Some(error);
            }
            Sighting::Trouble(_) => {}
        }
    }
    Ok(())
}
