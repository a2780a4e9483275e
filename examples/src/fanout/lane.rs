//! One replica's lane: brings it everything it does not have yet, for as long as the term lasts.

use super::{
    backlog::{Backlog, Piece},
    courier::{Answer, Courier},
    endpoint::Refusal,
    leader::Mandate,
    report::{Report, report},
    upstream::{FeedError, Upstream},
};
use crate::hold::Hold;
use leasehold::Lost;
use std::{net::SocketAddr, sync::Arc, time::Duration};

/// A lane of one term to one replica.
#[derive(Debug)]
pub struct Lane {
    /// The replica.
    pub to: String,
    /// What allows it to deliver.
    pub mandate: Mandate,
    /// Who carries.
    pub courier: Courier,
    /// What the leader read of the feed.
    pub backlog: Arc<Backlog>,
    /// The feed, for a replica that was away longer than the backlog remembers; and where replicas are.
    pub upstream: Upstream,
    /// Where to stand still on demand; lanes to the leader's own gate have none, for it may not know a newer fence.
    pub hold: Option<Arc<Hold>>,
}

/// Where a replica is, in both senses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its address.
    pub addr: SocketAddr,
    /// The last event of its stream.
    pub last: u64,
}

/// Why a lane ended. The term is over with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaneEnd {
    /// The leader's own look at the lease said so.
    #[error("{}", .0.cause)]
    Lost(#[from] Lost),
    /// A gate said so.
    #[error("turned away by {to}: presented fence {}, and it had met {}", .refusal.presented, .refusal.highest)]
    TurnedAway {
        /// Whose gate.
        to: String,
        /// What it said.
        refusal: Refusal,
    },
    /// The feed does not have what this replica needs next.
    #[error("{to} cannot be brought up to date: {why}")]
    Unreadable {
        /// The replica.
        to: String,
        /// Why.
        why: FeedError,
    },
}

/// Events in one delivery, at most.
const LOAD: usize = 64;
/// Between two attempts to reach a replica that is away.
const PAUSE: Duration = Duration::from_millis(50);

impl Lane {
    /// Asks the replica where it is (which also shuts out earlier terms), once.
    ///
    /// # Errors
    /// [`LaneEnd`] if the term is over. A replica that cannot be reached is `Ok(None)`.
    pub async fn call_on(&self) -> Result<Option<Place>, LaneEnd> {
        let Some(addr) = self.upstream.find(&self.to).await else { return Ok(None) };
        let permit = self.mandate.check()?;
        match self.courier.deliver(permit, &self.to, addr, Vec::new()).await {
            Answer::Received(last) => Ok(Some(Place { addr, last })),
            Answer::TurnedAway(refusal) => Err(self.turned_away(refusal)),
            Answer::Failed(_) => Ok(None),
        }
    }

    /// Delivers until the term is over.
    pub async fn run(self, mut place: Option<Place>) -> LaneEnd {
        loop {
            let end = match place {
                None => match self.call_on().await {
                    Ok(found) => {
                        place = found;
                        if place.is_none() {
                            tokio::time::sleep(PAUSE).await;
                        }
                        continue;
                    }
                    Err(end) => end,
                },
                Some(there) => match self.bring(there).await {
                    Ok(next) => {
                        place = next;
                        continue;
                    }
                    Err(end) => end,
                },
            };
            return end;
        }
    }

    /// One delivery. `Ok(None)`: it is not known whether it arrived, and the replica must be asked where it is.
    async fn bring(&self, Place { addr, last }: Place) -> Result<Option<Place>, LaneEnd> {
        let events = match self.backlog.after(last, LOAD).await {
            Piece::Events(events) => events,
            Piece::Behind { oldest } => {
                let to = (last + LOAD as u64).min(oldest - 1);
                let missing = self.upstream.range(last + 1, to).await;
                missing.map_err(|why| LaneEnd::Unreadable { to: self.to.clone(), why })?
            }
        };
        // The last look. Nothing can be awaited between it and the write, or the look would be worth less still;
        // and what may happen in between all the same is why the delivery carries its fence.
        let permit = self.mandate.check()?;
        self.stand_still(events.first().map_or(0, |e| e.seq));
        match self.courier.deliver(permit, &self.to, addr, events).await {
            Answer::Received(last) => Ok(Some(Place { addr, last })),
            Answer::TurnedAway(refusal) => Err(self.turned_away(refusal)),
            Answer::Failed(_) => Ok(None),
        }
    }

    fn stand_still(&self, seq: u64) {
        let Some(hold) = &self.hold else { return };
        hold.pass(|| {
            report(Report::InHand {
                fence: self.mandate.fence(),
                to: self.to.clone(),
                seq,
                trusted_ms: u64::try_from(self.mandate.remaining().as_millis()).unwrap_or(u64::MAX),
            });
        });
    }

    fn turned_away(&self, refusal: Refusal) -> LaneEnd {
        LaneEnd::TurnedAway { to: self.to.clone(), refusal }
    }
}
