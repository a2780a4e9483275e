//! What replicas, ledger and test did, as one history for the checkers of the testkit.

use crate::{Ledger, Replica, Said, Verdict, What};
use leasehold::{BootClock, Clock, Timing};
use leasehold_testkit::history::{Event, Step, What as Happened};
use std::{collections::HashMap, time::Duration};

/// A history in the making. All stamps are of one clock, and where one is not exact, it errs to the side on which no
/// sound run is accused: claims are held no longer, and granted no earlier, than the store would say.
#[derive(Debug)]
pub struct History {
    lease: String,
    ttl: u64,
    margin: u64,
    events: Vec<Event>,
    // Who had which fence.
    holders: HashMap<u64, String>,
}

impl History {
    /// A history of the lease that [`Site`](crate::Site)s have, with this ttl.
    ///
    /// # Panics
    /// If no lease can have it.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        let margin = Timing::new(ttl).expect("a good ttl").margin();
        let nanos = |time: Duration| time.as_nanos() as u64;
        Self {
            lease: crate::site::LEASE.into(),
            ttl: nanos(ttl),
            margin: nanos(margin),
            events: Vec::new(),
            holders: HashMap::new(),
        }
    }

    /// Now, on the clock of all stamps.
    #[must_use]
    pub fn now() -> u64 {
        BootClock.now().as_nanos()
    }

    /// Adds what the test itself did or knows.
    pub fn mark(&mut self, at: u64, replica: &str, fence: u64, what: Happened) {
        self.events.push(Event { at, lease: self.lease.clone(), replica: replica.into(), fence, what });
    }

    /// Adds everything that a replica said.
    pub fn add_replica(&mut self, replica: &Replica) {
        let id = replica.id().to_owned();
        // Told and not yet begun; and ended, but perhaps not released.
        let (mut acquired, mut ended) = (0, 0);
        for Said { at, fence, what, .. } in replica.said() {
            let fence = fence.unwrap_or(0);
            match what {
                What::Campaigning => self.mark(at, &id, 0, Happened::Wanted),
                What::Acquired { .. } => {
                    acquired = at;
                    self.holders.insert(fence, id.clone());
                }
                What::Began { trusted_until } => {
                    let sent = self.sent(trusted_until);
                    self.mark(acquired, &id, fence, self.held(trusted_until, Step::Grant));
                    self.mark(acquired, &id, fence, Happened::Granted { sent, inherited: None });
                    self.mark(acquired, &id, fence, Happened::Trusted { until: trusted_until });
                    self.mark(at, &id, fence, Happened::WorkerBegan);
                }
                What::StoodHeld { until } if self.sent(until) > acquired => {
                    let sent = self.sent(until);
                    self.mark(sent, &id, fence, self.held(until, Step::Renewal));
                    self.mark(sent, &id, fence, Happened::Trusted { until });
                }
                What::Trusted { from, to } => self.mark(to, &id, fence, Happened::Worked { from }),
                What::Ended => self.mark(at, &id, fence, Happened::WorkerEnded),
                What::Lost { .. } => self.mark(at, &id, fence, Happened::Lost),
                // The release is asked for after this, and answered before the next.
                What::WorkerEnded { .. } => ended = at,
                What::Released => {
                    self.mark(ended, &id, fence, Happened::Releasing { note: false });
                    self.mark(ended, &id, fence, Happened::Vacated);
                }
                _ => {}
            }
        }
    }

    /// The request that made trust last until then was sent no earlier.
    const fn sent(&self, until: u64) -> u64 {
        until + self.margin - self.ttl
    }

    /// Trust ends a margin before the claim, as counted from the sending: the store's expiry is no earlier.
    const fn held(&self, trusted_until: u64, by: Step) -> Happened {
        Happened::Held { until: trusted_until + self.margin, by }
    }

    /// Adds the ledger's decisions, in its own order. After the replicas, which tell who had which fence.
    pub fn add_ledger(&mut self, ledger: &Ledger) {
        for (seq, entry) in ledger.journal().into_iter().enumerate() {
            let holder = self.holders.get(&entry.fence).cloned().unwrap_or_else(|| "nobody".into());
            let accepted = entry.verdict == Verdict::Taken;
            let what = Happened::Wrote { resource: "ledger".into(), seq: seq as u64, accepted };
            self.mark(entry.at, &holder, entry.fence, what);
        }
    }

    /// All of it, ordered by time.
    #[must_use]
    pub fn told(mut self) -> Vec<Event> {
        // Stable: what has one stamp stays in the order in which it was added.
        self.events.sort_by_key(|event| event.at);
        self.events
    }
}
