//! What a leader does: reads the feed once, and fans it out to all replicas, its own included.

use super::{
    backlog::Backlog,
    courier::Courier,
    lane::{Lane, LaneEnd},
    leader::Mandate,
    report::{Report, report},
    upstream::{FeedError, Upstream},
};
use crate::hold::Hold;
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::sleep};

/// What a leader needs to know besides its mandate.
#[derive(Debug, Clone)]
pub struct FanOut {
    /// This replica.
    pub me: String,
    /// All replicas.
    pub replicas: Vec<String>,
    /// The feed, and where the replicas are.
    pub upstream: Upstream,
    /// The HTTP client for deliveries.
    pub http: reqwest::Client,
    /// Where a lane stands still on demand.
    pub hold: Arc<Hold>,
}

/// Events that a leader keeps for slow lanes; a replica that was away longer is brought up to date from the feed.
const BACKLOG: usize = 4_096;
/// Between two attempts at something that did not answer.
const PAUSE: Duration = Duration::from_millis(50);

impl FanOut {
    /// Delivers under `mandate` until the term is over. Dropping the future ends all lanes; a delivery that is under
    /// way then still ends by itself.
    ///
    /// # Errors
    /// Always: the feed has no end, so there is a reason.
    pub async fn run(self, mandate: Mandate) -> Result<(), LaneEnd> {
        let fence = mandate.fence();
        let lane = |to: &String, backlog: &Arc<Backlog>| Lane {
            to: to.clone(),
            mandate: mandate.clone(),
            courier: Courier::new(self.me.clone(), self.http.clone()),
            backlog: Arc::clone(backlog),
            upstream: self.upstream.clone(),
            hold: (*to != self.me).then(|| Arc::clone(&self.hold)),
        };

        // Where this replica's own stream ends is where the feed is read from. Others are where they are: a lane whose
        // replica is behind fetches the difference, and one whose replica is ahead waits. Each begins with a call at
        // its gate, which from then on refuses earlier terms, so that what it says of its stream stays true.
        let nothing = Arc::new(Backlog::new(1, 1));
        let own = loop {
            if let Some(place) = lane(&self.me, &nothing).call_on().await? {
                break place;
            }
            sleep(PAUSE).await;
        };
        report(Report::Resumed { fence, from: own.last + 1 });
        let backlog = Arc::new(Backlog::new(own.last + 1, BACKLOG));
        let mut work = JoinSet::new();
        for to in &self.replicas {
            work.spawn(lane(to, &backlog).run((*to == self.me).then_some(own)));
        }
        work.spawn(read(self.upstream.clone(), backlog, self.me.clone()));
        match work.join_next().await {
            Some(Ok(end)) => Err(end),
            Some(Err(end)) => match end.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down, and this future with it.
                Err(_) => std::future::pending().await,
            },
            // There is one lane for each replica, and the reader: the set is not empty.
            None => Ok(()),
        }
    }
}

/// Fills the backlog, over lost connections; ends only if the feed no longer has what comes next.
async fn read(upstream: Upstream, backlog: Arc<Backlog>, me: String) -> LaneEnd {
    loop {
        let why = upstream.follow(backlog.next(), |events| backlog.push(events)).await;
        if let FeedError::Gone(_) = why {
            return LaneEnd::Unreadable { to: me, why };
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests;
