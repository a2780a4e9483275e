//! Finding out what became of a call whose answer was lost.

use super::desk::bounded;
use crate::{seed, telemetry};
use leasehold_core::{
    AttemptId, Claim, LeaseName, NotHolder, Parting, Predecessor, Release, Retry, Store, StoreError, Verb,
    backoff::Backoff,
};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Time for one question.
const QUESTION: Duration = Duration::from_secs(2);

/// Releases what an attempt may have got, for nobody will use it. Asks until it knows, for one ttl at most: by then the
/// claim, if there ever was one, has expired (I7).
pub(super) async fn undo(store: &dyn Store, name: &LeaseName, attempt: AttemptId, ttl: Duration) {
    let end = Instant::now() + ttl;
    let mut backoff = backoff(attempt);
    loop {
        let knows = async {
            match bounded(QUESTION, || store.inspect(name)).await {
                Ok(Ok(record)) => match record.claim() {
                    Some(claim) if claim.attempt == attempt => {
                        let nothing = Parting::default();
                        let gone = bounded(QUESTION, || store.release(claim, &nothing)).await;
                        matches!(gone, Ok(Release::Released | Release::NotHolder(_)))
                    }
                    _ => true,
                },
                _ => false,
            }
        };
        match timeout_at(end, knows).await {
            Ok(true) | Err(_) => return,
            Ok(false) => sleep(backoff.next_delay()).await,
        }
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
async fn ended_by_us(
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
