//! A release that the store did not confirm in its caller's time. It is repeated in the background, so that nobody waits
//! for the ttl because the store could not listen for a while.
//!
//! That is safe at any time: a release names its whole claim, so a repeated or late one changes nothing for whoever holds
//! the lease by then.

#[cfg(test)]
mod tests;

use super::settle::{QUESTION, ended_by_us};
use crate::{
    calls::bounded,
    event::{Events, Happening},
    seed, telemetry,
};
use leasehold_core::{Claim, Parting, Release, Retry, Store, StoreError, Verb, backoff::Backoff};
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// From one repetition to the next: at first, and at most. Many leases of one node are let go together when their store
/// fails, and it should not be asked for all of them all the time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A release that was not confirmed.
pub(super) struct Overdue {
    pub(super) claim: Claim,
    pub(super) parting: Parting,
    /// Why not, the last time.
    pub(super) error: StoreError,
    /// When the claim has expired at the latest, for nobody renews it any more.
    pub(super) until: Instant,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The store says that the claim is over.
    Over,
    /// Nobody knows; by now it has expired.
    Expired,
    /// The clerk was to close, and asking again would not have helped.
    GivenUp,
}

impl Overdue {
    /// Repeats it until the store says that the claim is over, or the claim has expired. The signal, that the clerk is to
    /// close, has it repeated at once.
    pub(super) async fn settle(
        mut self,
        store: &dyn Store,
        events: &Events,
        mut closing: watch::Receiver<bool>,
    ) -> End {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE, seed::of(self.claim.attempt));
        let mut repeats = 0;
        loop {
            let pause = match self.error.retry() {
                Retry::Soon => backoff.next_delay(),
                // It takes somebody who mends the store, and that takes minutes: nobody's end waits for them.
                Retry::AfterRepair | Retry::Never if *closing.borrow() => return End::GivenUp,
                Retry::AfterRepair => backoff.next_delay(),
                Retry::Never => self.left(),
            };
            let then = self.until.min(Instant::now() + pause);
            if *closing.borrow() {
                sleep_until(then).await;
            } else {
                tokio::select! {
                    () = sleep_until(then) => {}
                    _ = closing.wait_for(|closing| *closing) => backoff.reset(),
                }
            }
            if self.left().is_zero() {
                telemetry::release_expired(&self.claim, repeats);
                return End::Expired;
            }
            if self.error.retry() != Retry::Never {
                repeats += 1;
                if let Some(answer) = self.repeat(store).await {
                    self.tell(events, &answer, repeats);
                    return End::Over;
                }
            }
        }
    }

    /// Asks once more: the answer, if it is one.
    async fn repeat(&mut self, store: &dyn Store) -> Option<Release> {
        let patience = self.left().min(QUESTION);
        self.error = match bounded(patience, || store.release(&self.claim, &self.parting)).await {
            Ok(Release::Released) => return Some(Release::Released),
            // Each time before may have been the one that released it.
            Ok(Release::NotHolder(answer)) => {
                let error = self.error.clone();
                return Some(ended_by_us(store, &self.claim, answer, error, patience).await);
            }
            Ok(Release::Refused(error) | Release::Unknown(error)) => error,
            Err(fault) => fault.error(Verb::Release, store).on(&self.claim.name),
        };
        telemetry::release_open(&self.claim, &self.error);
        None
    }

    fn tell(&self, events: &Events, answer: &Release, repeats: u32) {
        telemetry::released_late(&self.claim, answer, repeats);
        if *answer == Release::Released {
            let heir = self.parting.heir.as_ref().map(|(heir, _)| heir.clone());
            events.tell(&self.claim.name, Some(self.claim.fence), Happening::Released { heir });
        }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}
