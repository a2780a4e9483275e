//! The election: everything that this program asks of leasehold.

use super::{
    fan_out::FanOut,
    lane::LaneEnd,
    report::{Report, report},
};
use leasehold::{BoxError, Election, Event, Happening, LostCause, Node, Stale, Stopped, Term, WorkerOutcome};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// What allows a leader to deliver: the proof behind its term.
pub type Mandate = leasehold::Grant;

/// The lease that is campaigned for.
pub const LEASE: &str = "fanout/feed";
/// How long leaving may take.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// This replica's campaign, from now on and term after term.
#[derive(Debug)]
pub struct Campaign {
    node: Node,
    _election: Election,
}

/// Campaigns on the store at `url`, and does `work` whenever this replica leads.
///
/// # Errors
/// When the store cannot be opened, or a setting is refused.
pub async fn campaign(url: &str, ttl: Duration, work: FanOut) -> Result<Campaign, BoxError> {
    let store = leasehold::connect(url).await?;
    // The deliveries are fenced, so it is safe to take over at once from a process that is seen to have ended.
    let crash_witness = store.traits().crash_witness;
    let node = Node::builder(store).replica(work.me.as_str()).observe(told()).start().await?;
    let election = node
        .election(LEASE)
        .ttl(ttl)
        .crash_witness(crash_witness)
        .lead(move |term| lead(term, work.clone()))
        .await?;
    Ok(Campaign { node, _election: election })
}

impl Campaign {
    /// Ends the work, releases the lease if it is held, and leaves the candidates.
    pub async fn leave(self) {
        if self.node.shutdown(LEAVE_WITHIN).await != Stopped::Clean {
            report(Report::Trouble { what: "the node did not end in order".to_owned() });
        }
    }
}

/// One term.
async fn lead(term: Term, work: FanOut) -> Result<(), BoxError> {
    let predecessor = term.predecessor().fate().to_string();
    report(Report::Leading { fence: term.fence(), predecessor });
    tokio::select! {
        end = work.run(term.grant().clone()) => match end {
            // The term is over, and this future is about to be dropped. To return an error instead would look like
            // work that failed.
            Err(LaneEnd::Lost(_)) => std::future::pending().await,
            Err(LaneEnd::TurnedAway { refusal, .. }) => {
                // A gate knows better than our clock: give up now, and bid above its mark next time.
                term.outranked(Stale { presented: refusal.presented, highest: refusal.highest });
                std::future::pending().await
            }
            other => Ok(other?),
        },
        // Everything is delivered under acknowledgement, so there is nothing to finish.
        _ = term.quiescing() => Ok(()),
    }
}

/// Tells the parent when the work of a term has ended, and why.
fn told() -> impl Fn(&Event) + Send + Sync {
    let cause: Mutex<Option<LostCause>> = Mutex::default();
    move |event| {
        let mut cause = cause.lock().unwrap_or_else(PoisonError::into_inner);
        match (&event.what, event.fence) {
            (Happening::Lost { cause: why }, _) => *cause = Some(why.clone()),
            (Happening::WorkerEnded { outcome }, Some(fence)) => {
                let cause = cause.take().filter(|cause| !cause.is_voluntary());
                let how = match (&cause, outcome) {
                    (Some(cause), _) => cause.to_string(),
                    (None, WorkerOutcome::Finished) => {
                        "asked to leave, and ready to release the lease".to_owned()
                    }
                    (None, WorkerOutcome::Failed(why)) => why.to_string(),
                    (None, outcome) => outcome.as_str().to_owned(),
                };
                report(Report::Ended { fence, how, lost: cause.is_some() });
            }
            _ => {}
        }
    }
}
