//! Who holds a lease now: a stored row, judged by the clock, the boot and the witnesses.

use crate::{
    error::Fault,
    row::{Reservation, Row, Term},
    site::Site,
    witness::{self, Pulse},
};
use leasehold_core::{
    AttemptId, Bid, Claim, Ended, Fence, Held, LeaseName, LeaseRecord, LeaseState, Moment, NotHolder,
    Parting, Predecessor, ReplicaId, TraceContext, timing::MAX_TTL,
};
use std::{collections::HashMap, sync::Arc};

/// A lease after whatever ended by itself is ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    pub(crate) name: LeaseName,
    /// `None` if it was never held.
    pub(crate) counter: Option<Fence>,
    pub(crate) term: Option<Term>,
    pub(crate) heir: Option<Reservation>,
    pub(crate) past: Predecessor,
    /// The attempts of the last two terms that ended, the latest first: they are never granted again.
    pub(crate) spent: [Option<AttemptId>; 2],
    /// The witness of the crashed process that held it, when that was noticed just now.
    pub(crate) crashed: Option<Arc<str>>,
}

/// Judges rows at one moment. Remembers the pulses it felt: a process may hold thousands of leases.
pub(crate) struct Judge<'s> {
    site: &'s Site,
    pub(crate) now: Moment,
    pulses: HashMap<Arc<str>, Pulse>,
}

impl<'s> Judge<'s> {
    pub(crate) fn new(site: &'s Site, now: Moment) -> Self {
        Self { site, now, pulses: HashMap::new() }
    }

    /// The standing of a row, or of a name that has none.
    pub(crate) fn standing(&mut self, name: &LeaseName, row: Option<Row>) -> Result<Standing, Fault> {
        let Some(row) = row else {
            let (name, past) = (name.clone(), Predecessor::None);
            return Ok(Standing {
                name,
                counter: None,
                term: None,
                heir: None,
                past,
                spent: [None; 2],
                crashed: None,
            });
        };
        let Row { name, counter, turn: _, term, heir, past, spent } = row;
        let mut standing = Standing { name, counter: Some(counter), term, heir, past, spent, crashed: None };
        if let Some(term) = &standing.term {
            if self.is_over(&term.boot, term.until, "until", &standing.name)? {
                standing.end(&TraceContext::NONE, Predecessor::Expired);
            } else if let Some(witness) = term.witness.clone()
                && self.pulse(&witness) == Pulse::Stopped
            {
                standing.end(&TraceContext::NONE, Predecessor::Crashed);
                standing.crashed = Some(witness);
            }
        }
        if let Some(heir) = &standing.heir
            && self.is_over(&heir.boot, heir.until, "heir_until", &standing.name)?
        {
            standing.heir = None;
        }
        Ok(standing)
    }

    fn is_over(&self, boot: &str, until: Moment, column: &str, name: &LeaseName) -> Result<bool, Fault> {
        if *boot != *self.site.boot {
            return Ok(true); // Whoever held it ended with that boot.
        }
        // Nobody was ever promised so much: a damaged value must not block a lease for years.
        if until.since(self.now) > MAX_TTL {
            let problem =
                format!("{column} lies {:?} ahead, more than any lease lasts", until.since(self.now));
            return Err(Fault::damage(format!("table lease, row {:?}", name.as_str()), problem));
        }
        Ok(until <= self.now)
    }

    fn pulse(&mut self, witness: &Arc<str>) -> Pulse {
        if self.site.is_own_witness(witness) {
            return Pulse::Beats;
        }
        *self.pulses.entry(witness.clone()).or_insert_with(|| witness::pulse(&self.site.place, witness))
    }
}

impl Standing {
    /// Who keeps `replica` from being granted, if anyone does.
    pub(crate) fn obstacle(&self, replica: &ReplicaId, now: Moment) -> Option<Held> {
        let fence = self.counter?;
        let (by, until, reserved) = match (&self.term, &self.heir) {
            (Some(term), _) => (&term.claim.replica, term.until, false),
            (None, Some(heir)) if heir.heir != *replica => (&heir.heir, heir.until, true),
            (None, _) => return None,
        };
        Some(Held { by: by.clone(), fence, remaining: until.since(now), reserved })
    }

    /// Begins a term. The caller found no obstacle.
    pub(crate) fn begin(
        &mut self,
        bid: &Bid,
        fence: Fence,
        now: Moment,
        site: &Site,
        witness: Option<Arc<str>>,
    ) -> Claim {
        let claim = bid.granted(fence);
        self.counter = Some(fence);
        self.heir = None;
        self.term = Some(Term {
            claim: claim.clone(),
            boot: site.boot.clone(),
            since: now,
            until: now.after(bid.ttl),
            trace: bid.trace.clone(),
            witness,
        });
        claim
    }

    /// Ends the term, in `trace` if there is one, else in the trace of its acquire.
    pub(crate) fn end(&mut self, trace: &TraceContext, fate: impl FnOnce(Ended) -> Predecessor) {
        if let Some(Term { claim, trace: begun_in, .. }) = self.term.take() {
            self.spent = [Some(claim.attempt), self.spent[0]];
            let trace = if *trace == TraceContext::NONE { begun_in } else { trace.clone() };
            self.past = fate(Ended { fence: claim.fence, replica: claim.replica, trace });
        }
    }

    /// Keeps the vacancy for an heir, if one is named. No window is longer than the longest lease.
    pub(crate) fn bequeath(&mut self, parting: &Parting, now: Moment, site: &Site) {
        self.heir = parting.heir.as_ref().map(|(heir, window)| Reservation {
            heir: heir.clone(),
            boot: site.boot.clone(),
            until: now.after((*window).min(MAX_TTL)),
        });
    }

    /// Whether exactly this claim lives.
    pub(crate) fn holds(&self, claim: &Claim) -> bool {
        self.term.as_ref().is_some_and(|term| term.claim == *claim)
    }

    /// What somebody is told whose claim is not the living one.
    pub(crate) fn not_holder(&self) -> NotHolder {
        let holder = self.term.as_ref().map(|term| (term.claim.replica.clone(), term.claim.fence));
        NotHolder { holder, highest: self.counter }
    }

    /// The row to save, once the lease was held at all.
    pub(crate) fn row(self, turn: i64) -> Option<Row> {
        let Self { name, counter, term, heir, past, spent, crashed: _ } = self;
        Some(Row { name, counter: counter?, turn, term, heir, past, spent })
    }

    /// What is shown to people and candidates.
    pub(crate) fn record(self, now: Moment) -> LeaseRecord {
        let state = match (self.term, self.heir) {
            (Some(term), _) => LeaseState::Held {
                remaining: term.until.since(now),
                held_for: now.since(term.since),
                crash_witness: term.witness.is_some(),
                claim: term.claim,
            },
            (None, Some(heir)) => LeaseState::Reserved { heir: heir.heir, remaining: heir.until.since(now) },
            (None, None) => LeaseState::Vacant,
        };
        LeaseRecord { name: self.name, counter: self.counter, state, predecessor: self.past }
    }
}
