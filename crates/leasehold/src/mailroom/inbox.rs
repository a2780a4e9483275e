//! Reading this replica's letters.

use super::MailroomMsg;
use crate::{calls::bounded, seed, telemetry};
use leasehold_core::{ReplicaId, SharedStore, Verb};
use ractor::ActorRef;
use std::time::Duration;
use tokio::task::AbortHandle;

/// The longest that the opening of the inbox is waited for.
const OPENING: Duration = Duration::from_secs(10);

/// Reads letters for as long as it runs.
pub(super) fn read(store: SharedStore, replica: ReplicaId, me: ActorRef<MailroomMsg>) -> AbortHandle {
    let task = tokio::spawn(async move {
        let mut backoff = leasehold_core::backoff::Backoff::new(
            Duration::from_millis(200),
            Duration::from_secs(10),
            seed::fresh(),
        );
        loop {
            let opened = bounded(OPENING, || store.inbox(&replica)).await;
            match opened.unwrap_or_else(|fault| Err(fault.error(Verb::Inbox, &*store))) {
                Ok(mut inbox) => {
                    backoff.reset();
                    while let Some(letter) = inbox.next().await {
                        if me.cast(MailroomMsg::Letter(letter)).is_err() {
                            return;
                        }
                    }
                }
                Err(error) => telemetry::inbox_troubled(&error),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    });
    task.abort_handle()
}
