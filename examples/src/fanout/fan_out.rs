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
use futures_util::future::join_all;
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::timeout};

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
/// How long a new leader waits to hear where a replica is, before it begins without it.
const FIRST_CALL: Duration = Duration::from_millis(100);

impl FanOut {
    /// Delivers under `mandate` until the term is over. Dropping the future ends all lanes; a delivery that is under
    /// way then still ends by itself.
    ///
    /// # Errors
    /// Always: the feed has no end, so there is a reason.
    pub async fn run(self, mandate: Mandate) -> Result<(), LaneEnd> {
        let fence = mandate.fence();
        let backlog_of = |first| Arc::new(Backlog::new(first, BACKLOG));
        let lane = |to: &String, backlog: &Arc<Backlog>| Lane {
            to: to.clone(),
            mandate: mandate.clone(),
            courier: Courier::new(self.me.clone(), self.http.clone()),
            backlog: Arc::clone(backlog),
            upstream: self.upstream.clone(),
            hold: (*to != self.me).then(|| Arc::clone(&self.hold)),
        };

        // First to each gate: from then on it refuses earlier terms, so what it says of its stream stays true.
        let nothing = backlog_of(1);
        let lanes: Vec<Lane> = self.replicas.iter().map(|to| lane(to, &nothing)).collect();
        let calls = lanes.iter().map(|lane| async {
            // One that is frozen must not hold up all the others.
            timeout(FIRST_CALL, lane.call_on()).await.unwrap_or(Ok(None))
        });
        let places = join_all(calls).await.into_iter().collect::<Result<Vec<_>, _>>()?;

        // Then the feed, from what every replica within reach has. One that is out of reach is served later, by a
        // range of its own.
        let first = places.iter().flatten().map(|place| place.last).min().unwrap_or(0) + 1;
        report(Report::Resumed { fence, from: first });
        let backlog = backlog_of(first);
        let mut work = JoinSet::new();
        for (to, place) in self.replicas.iter().zip(places) {
            work.spawn(lane(to, &backlog).run(place));
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
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests;
