//! Finding out what became of a call whose answer was lost.

#[cfg(test)]
mod tests;

use crate::{calls::bounded, seed, telemetry};
use leasehold_core::{
    AttemptId, Claim, LeaseName, NotHolder, Parting, Predecessor, Release, Retry, Store, StoreError, Verb,
    backoff::Backoff,
};
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout_at},
};

/// Time for one question.
pub(super) const QUESTION: Duration = Duration::from_secs(2);

/// How long a claim that is not there is looked for again: its request may be under way yet, on the wire or in a store
/// that waits for its disk.
const SEARCH: Duration = QUESTION;
/// The same when the clerk is to close.
const LAST_SEARCH: Duration = Duration::from_millis(250);

/// What a claim that is not there says about its attempt.
pub(super) enum Absence {
    /// Everything: the answer to its bid has come, or will come and have us look once more.
    Proves,
    /// Nothing by itself, for its answer was lost: only one that lasts counts. The signal shortens the search.
    MustLast(watch::Receiver<bool>),
}

/// Releases what an attempt may have got, for nobody will use it. Asks until it knows, for one ttl at most: by then the
/// claim, if there ever was one, has expired (I7).
pub(super) async fn undo(
    store: &dyn Store,
    name: &LeaseName,
    attempt: AttemptId,
    ttl: Duration,
    mut absence: Absence,
) {
    let begun = Instant::now();
    let end = begun + ttl;
    let mut backoff = backoff(attempt);
    loop {
        let asked = Instant::now();
        let Ok(seen) = timeout_at(end, look_and_release(store, name, attempt)).await else { return };
        let again = Instant::now() + backoff.next_delay();
        match (seen, &mut absence) {
            (Seen::Released, _) | (Seen::Absent, Absence::Proves) => return,
            (Seen::Nothing, _) => sleep_until(again.min(end)).await,
            (Seen::Absent, Absence::MustLast(closing)) => {
                // Before the end of the search no absence counts, so there is always a look that begins after it.
                let enough = begun + ttl.min(if *closing.borrow() { LAST_SEARCH } else { SEARCH });
                if asked >= enough {
                    return;
                }
                if !*closing.borrow() {
                    tokio::select! {
                        () = sleep_until(again.min(enough)) => continue,
                        _ = closing.wait_for(|closing| *closing) => {}
                    }
                }
                sleep_until(again.min(begun + ttl.min(LAST_SEARCH))).await;
            }
        }
    }
}

/// What one look for a claim found.
enum Seen {
    /// It was there, and is no more.
    Released,
    /// It is not there.
    Absent,
    /// The store did not answer, or not for certain.
    Nothing,
}

async fn look_and_release(store: &dyn Store, name: &LeaseName, attempt: AttemptId) -> Seen {
    let Ok(Ok(record)) = bounded(QUESTION, || store.inspect(name)).await else { return Seen::Nothing };
    let Some(claim) = record.claim().filter(|claim| claim.attempt == attempt) else { return Seen::Absent };
    let nothing = Parting::default();
    match bounded(QUESTION, || store.release(claim, &nothing)).await {
        Ok(Release::Released | Release::NotHolder(_)) => Seen::Released,
        _ => Seen::Nothing,
    }
}

/// Releases a claim, and repeats it while the answer is open and time is left: a repeated release is a no-op.
pub(super) async fn release(
    store: &dyn Store,
    claim: &Claim,
    parting: &Parting,
    within: Duration,
) -> Release {
    let end = Instant::now() + within;
    let mut backoff = backoff(claim.attempt);
    let mut open: Option<StoreError> = None;
    loop {
        let left = end.saturating_duration_since(Instant::now()).min(QUESTION);
        let error: StoreError = match bounded(left, || store.release(claim, parting)).await {
            Ok(Release::NotHolder(answer)) => match open {
                None => return Release::NotHolder(answer),
                // After an attempt whose answer was lost: that attempt may have been the release.
                Some(error) => return ended_by_us(store, claim, answer, error, left).await,
            },
            Ok(Release::Released) => return Release::Released,
            Ok(Release::Refused(error)) if open.is_none() && error.retry() != Retry::Soon => {
                telemetry::release_failed(claim, &error);
                return Release::Refused(error);
            }
            Ok(Release::Refused(error) | Release::Unknown(error)) => error,
            Err(fault) => fault.error(Verb::Release, store).on(&claim.name),
        };
        let delay = backoff.next_delay();
        if Instant::now() + delay >= end {
            telemetry::release_failed(claim, &error);
            return Release::Unknown(error);
        }
        open = Some(error);
        sleep(delay).await;
    }
}

/// Whether a claim that is over was ended by our own release, whose answer was lost. With somebody else on it already
/// the record's predecessor tells; where it tells no more, the end of the claim is certain and its cause is not.
pub(super) async fn ended_by_us(
    store: &dyn Store,
    claim: &Claim,
    answer: NotHolder,
    error: StoreError,
    within: Duration,
) -> Release {
    let Ok(Ok(record)) = bounded(within, || store.inspect(&claim.name)).await else {
        return Release::Unknown(error);
    };
    match record.predecessor {
        Predecessor::Released(ended) | Predecessor::HandedOff(ended) if ended.fence == claim.fence => {
            Release::Released
        }
        predecessor if predecessor.fence() == Some(claim.fence) => Release::NotHolder(answer),
        _ => Release::Unknown(error),
    }
}

fn backoff(attempt: AttemptId) -> Backoff {
    Backoff::new(Duration::from_millis(20), Duration::from_secs(1), seed::of(attempt))
}
