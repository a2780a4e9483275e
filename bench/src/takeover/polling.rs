//! The yardstick: the usual recipe, on the same store. Try to acquire every ttl/3; renew as often; release at the end.

use leasehold::{Acquire, AttemptId, Bid, Parting, Renewal, SharedStore, TraceContext};
use std::time::Duration;

/// Waits for the lease by polling, and works once under it.
pub(super) async fn coordinate<W, F>(
    store: &SharedStore,
    name: &str,
    ttl: Duration,
    work: W,
) -> anyhow::Result<()>
where
    W: Fn() -> F,
    F: Future<Output = ()>,
{
    loop {
        let bid = Bid {
            name: name.try_into()?,
            replica: "poller".try_into()?,
            attempt: AttemptId::random(),
            ttl,
            floor: None,
            crash_witness: false,
            trace: TraceContext::NONE,
        };
        if let Acquire::Granted(granted) = store.acquire(&bid).await {
            let renewals = [Renewal { claim: granted.claim.clone(), ttl }];
            let renewing = async {
                loop {
                    tokio::time::sleep(ttl / 3).await;
                    let _ = store.renew(&renewals).await;
                }
            };
            tokio::select! {
                () = work() => {}
                () = renewing => {}
            }
            let _ = store.release(&granted.claim, &Parting::default()).await;
            return Ok(());
        }
        tokio::time::sleep(ttl / 3).await;
    }
}
