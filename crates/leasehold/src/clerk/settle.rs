//! Finding out what became of a call whose answer was lost.

use super::desk::bounded;
use crate::telemetry;
use leasehold_core::{
    AttemptId, Claim, LeaseName, Parting, Release, Retry, Store, StoreError, Verb, backoff::Backoff,
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
            match bounded(QUESTION, store.inspect(name)).await {
                Ok(Ok(record)) => match record.claim() {
                    Some(claim) if claim.attempt == attempt => {
                        let gone = bounded(QUESTION, store.release(claim, &Parting::default())).await;
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
    let mut repeated = false;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let error: StoreError = match bounded(left.min(QUESTION), store.release(claim, parting)).await {
            // Not the holder any more, after an attempt whose answer was lost: that attempt was the release.
            Ok(Release::NotHolder(answer))
                if repeated && answer.highest == Some(claim.fence) && answer.holder.is_none() =>
            {
                return Release::Released;
            }
            Ok(answer @ (Release::Released | Release::NotHolder(_))) => return answer,
            Ok(Release::Refused(error)) if error.retry() != Retry::Soon => {
                telemetry::release_failed(claim, &error);
                return Release::Refused(error);
            }
            Ok(Release::Refused(error) | Release::Unknown(error)) => error,
            Err(fault) => fault.error(Verb::Release, store).on(&claim.name),
        };
        repeated = true;
        let delay = backoff.next_delay();
        if Instant::now() + delay >= end {
            telemetry::release_failed(claim, &error);
            return Release::Unknown(error);
        }
        sleep(delay).await;
    }
}

fn backoff(attempt: AttemptId) -> Backoff {
    let seed = u64::from_le_bytes(std::array::from_fn(|at| attempt.as_bytes()[at]));
    Backoff::new(Duration::from_millis(20), Duration::from_secs(1), seed)
}
