//! The simulated store: the real table, its requests and its audit.

use super::Mutant;
use crate::history::{Event, Step, What};
use leasehold_core::{
    Acquire, AttemptId, Bid, Claim, LeaseName, LeaseRecord, LeaseState, Moment, Parting, Release, Renew,
    Renewal, ReplicaId, StoreErrorKind, memory::Table,
};

/// A request on its way.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Acquire(Bid),
    Renew(Renewal),
    Release(Claim, Parting),
    Look,
}

/// An answer on its way.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    Look(LeaseRecord),
    /// Nothing was done: the store cannot be reached, and that is known at once.
    Refused,
}

#[derive(Debug)]
pub(super) struct Store {
    table: Table,
    name: LeaseName,
    mutant: Option<Mutant>,
    /// The attempts that were granted, in their order.
    granted: Vec<AttemptId>,
}

impl Store {
    pub(super) fn new(name: LeaseName, mutant: Option<Mutant>) -> Self {
        Self { table: Table::default(), name, mutant, granted: Vec::new() }
    }

    pub(super) fn record(&self, now: Moment) -> LeaseRecord {
        self.table.inspect(now, &self.name)
    }

    /// Carries out a request, and writes down what it did to the claims.
    pub(super) fn serve(&mut self, now: Moment, request: &Request, audit: &mut Vec<Event>) -> Answer {
        let before = self.record(now);
        let answer = match request {
            Request::Acquire(bid) => Answer::Acquire(self.acquire(now, bid, &before)),
            Request::Renew(renewal) => Answer::Renew(self.renew(now, renewal, &before)),
            Request::Release(claim, parting) => {
                let by_name = self.mutant == Some(Mutant::ReleaseByName);
                let claim = before.claim().filter(|_| by_name).unwrap_or(claim);
                Answer::Release(self.table.release(now, claim, parting))
            }
            Request::Look => Answer::Look(before.clone()),
        };
        self.audit(now, &before, request, audit);
        answer
    }

    /// The operating system ends a replica's process, and the store sees it.
    pub(super) fn crash(&mut self, now: Moment, replica: &ReplicaId, audit: &mut Vec<Event>) {
        let before = self.record(now);
        if !self.table.crash(now, replica).is_empty() {
            self.audit(now, &before, &Request::Look, audit);
        }
    }

    fn acquire(&mut self, now: Moment, bid: &Bid, before: &LeaseRecord) -> Acquire {
        match self.mutant {
            Some(Mutant::CounterInRecord) => {
                if before.state == LeaseState::Vacant {
                    self.table = Table::default();
                }
                // Such a store does not know of floors either; they would repair it.
                self.table.acquire(now, &Bid { floor: None, ..bid.clone() })
            }
            Some(Mutant::ExpiryUnchecked) => {
                if let Some(claim) = before.claim()
                    && claim.attempt != bid.attempt
                {
                    let _ = self.table.release(now, claim, &Parting::default());
                }
                self.table.acquire(now, bid)
            }
            Some(Mutant::SpentIsForgotten) => match self.table.acquire(now, bid) {
                Acquire::Refused(error) if *error.kind() == StoreErrorKind::SpentAttempt => {
                    let attempt = AttemptId::from_bytes(bid.attempt.as_bytes().map(|byte| !byte));
                    self.table.acquire(now, &Bid { attempt, ..bid.clone() })
                }
                answer => answer,
            },
            _ => self.table.acquire(now, bid),
        }
    }

    fn renew(&mut self, now: Moment, renewal: &Renewal, before: &LeaseRecord) -> Renew {
        match before.claim() {
            Some(claim) if self.mutant == Some(Mutant::RenewByName) => {
                self.table.renew(now, &Renewal { claim: claim.clone(), ttl: renewal.ttl })
            }
            _ => self.table.renew(now, renewal),
        }
    }

    fn audit(&mut self, now: Moment, before: &LeaseRecord, request: &Request, audit: &mut Vec<Event>) {
        let after = self.record(now);
        let mut note = |claim: &Claim, what| {
            let (lease, replica) = (claim.name.to_string(), claim.replica.to_string());
            audit.push(Event { at: now.as_nanos(), lease, replica, fence: claim.fence.get(), what });
        };
        if let Some(ended) = before.claim()
            && after.claim() != Some(ended)
        {
            note(ended, What::Vacated);
        }
        let (Some(claim), remaining) = (after.claim(), after.remaining()) else { return };
        let by = match request {
            Request::Acquire(bid) if before.claim() != Some(claim) => {
                // What it must remember: two further terms have not begun.
                let revived = self.granted.iter().rev().take(2).any(|attempt| *attempt == bid.attempt);
                self.granted.push(bid.attempt);
                if revived { Step::Revival } else { Step::Grant }
            }
            Request::Acquire(_) if remaining != before.remaining() => Step::Repeat,
            Request::Renew(_) if remaining != before.remaining() => Step::Renewal,
            _ => return,
        };
        note(claim, What::Held { until: now.after(remaining).as_nanos(), by });
    }
}
