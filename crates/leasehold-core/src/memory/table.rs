//! The leases of a store as a pure table: one clock reading in, one answer out.
//!
//! No async, no clock of its own, no lock: the memory store drives it under a mutex, a simulation drives it in
//! virtual time. It is the reference for what every other store answers.

use super::entry::{Entry, Legacy};
use crate::{
    Acquire, Bid, Claim, Fence, Force, Granted, LeaseName, LeaseRecord, Moment, Parting, Predecessor,
    Release, Renew, Renewal, ReplicaId, StoreError, StoreErrorKind, TraceContext, Verb, bounds,
};
use std::{collections::BTreeMap, time::Duration};

/// The longest reason that a forced release keeps, in bytes.
pub const MAX_REASON_BYTES: usize = 1_000;

/// Leases by name. `now` must never run backwards from one call to the next.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    // Ordered, so that listing needs no sorting and a simulation is the same in every run.
    leases: BTreeMap<LeaseName, Entry>,
}

impl Table {
    /// Asks for a lease: rules 1, 2, 4, 5, 6.
    pub fn acquire(&mut self, now: Moment, bid: &Bid) -> Acquire {
        if let Err(problem) = bounds::ttl(bid.ttl) {
            return Acquire::Refused(failure(problem, Verb::Acquire, &bid.name));
        }
        let entry = self.leases.entry(bid.name.clone()).or_default();
        entry.settle(now);
        if let Some(legacy) = entry.repeat(bid, now) {
            return granted(legacy, bid.ttl);
        }
        if let Some(held) = entry.obstacle(&bid.replica, now) {
            return Acquire::Held(held);
        }
        if entry.is_spent(bid.attempt) {
            return Acquire::Refused(failure(StoreErrorKind::SpentAttempt, Verb::Acquire, &bid.name));
        }
        match Fence::after(entry.counter, bid.floor) {
            Some(fence) => granted(entry.begin(bid, fence, now), bid.ttl),
            None => {
                let highest = entry.counter.max(bid.floor).unwrap_or(Fence::MAX);
                if entry.counter.is_none() {
                    self.leases.remove(&bid.name);
                }
                let kind = StoreErrorKind::FenceExhausted(highest);
                Acquire::Refused(failure(kind, Verb::Acquire, &bid.name))
            }
        }
    }

    /// Renews a claim: rule 3.
    pub fn renew(&mut self, now: Moment, renewal: &Renewal) -> Renew {
        let Renewal { claim, ttl } = renewal;
        if let Err(problem) = bounds::ttl(*ttl) {
            return Renew::Refused(failure(problem, Verb::Renew, &claim.name));
        }
        let Some(entry) = self.settled(now, &claim.name) else {
            return Renew::NotHolder(Entry::default().not_holder());
        };
        if entry.extend(claim, now.after(*ttl)) {
            Renew::Renewed { remaining: *ttl }
        } else {
            Renew::NotHolder(entry.not_holder())
        }
    }

    /// Ends a claim: rules 3 and 5.
    pub fn release(&mut self, now: Moment, claim: &Claim, parting: &Parting) -> Release {
        match self.settled(now, &claim.name) {
            Some(entry) if entry.holds(claim) => {
                let fate =
                    if parting.heir.is_some() { Predecessor::HandedOff } else { Predecessor::Released };
                entry.end(parting.trace.clone(), fate);
                entry.bequeath(parting.note.clone(), parting.heir.clone(), now);
                Release::Released
            }
            Some(entry) => Release::NotHolder(entry.not_holder()),
            None => Release::NotHolder(Entry::default().not_holder()),
        }
    }

    /// Ends whatever claim lives. A reservation for an heir is no claim, and stays.
    pub fn force_release(&mut self, now: Moment, name: &LeaseName, by: &ReplicaId, reason: &str) -> Force {
        if let Err(problem) = bounds::reason(reason) {
            return Force::Refused(failure(problem, Verb::ForceRelease, name));
        }
        let Some((entry, claim)) = self.settled(now, name).and_then(|entry| {
            let claim = entry.claim()?.clone();
            Some((entry, claim))
        }) else {
            return Force::Vacant;
        };
        let (by, reason) = (by.clone(), reason.into());
        entry.end(TraceContext::NONE, |ended| Predecessor::Forced { ended, by, reason });
        Force::Forced { fence: claim.fence, replica: claim.replica }
    }

    /// Ends the claims of `replica` that asked for a crash witness, as the end of its process would. Names the leases.
    pub fn crash(&mut self, now: Moment, replica: &ReplicaId) -> Vec<LeaseName> {
        let mut ended = Vec::new();
        for (name, entry) in &mut self.leases {
            entry.settle(now);
            if entry.is_witnessed() && entry.claim().is_some_and(|claim| claim.replica == *replica) {
                entry.end(TraceContext::NONE, Predecessor::Crashed);
                ended.push(name.clone());
            }
        }
        ended
    }

    /// The state of one lease; a name never held is [`LeaseRecord::unknown`].
    #[must_use]
    pub fn inspect(&self, now: Moment, name: &LeaseName) -> LeaseRecord {
        self.leases.get(name).map_or_else(|| LeaseRecord::unknown(name.clone()), |e| e.record(name, now))
    }

    /// The leases whose names begin with `prefix`, by name.
    pub fn list<'a>(&'a self, now: Moment, prefix: &'a str) -> impl Iterator<Item = LeaseRecord> + 'a {
        let matching = self.leases.iter().filter(move |(name, _)| name.as_str().starts_with(prefix));
        matching.map(move |(name, entry)| entry.record(name, now))
    }

    /// The highest fence issued for a name.
    #[must_use]
    pub fn counter(&self, name: &LeaseName) -> Option<Fence> {
        self.leases.get(name)?.counter
    }

    fn settled(&mut self, now: Moment, name: &LeaseName) -> Option<&mut Entry> {
        let entry = self.leases.get_mut(name)?;
        entry.settle(now);
        Some(entry)
    }
}

fn granted(legacy: Legacy, remaining: Duration) -> Acquire {
    let Legacy { claim, predecessor, inherited } = legacy;
    Acquire::Granted(Granted { claim, remaining, predecessor, inherited })
}

fn failure(kind: StoreErrorKind, verb: Verb, name: &LeaseName) -> StoreError {
    StoreError::new(kind, verb, super::ADDRESS).on(name)
}
