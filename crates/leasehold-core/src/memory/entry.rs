//! One lease as the table keeps it.

use crate::{
    AttemptId, Bid, Claim, Ended, Fence, Held, LeaseName, LeaseRecord, LeaseState, Moment, NotHolder, Note,
    Predecessor, ReplicaId, TraceContext,
};
use std::time::Duration;

/// One lease. It is never removed: the counter outlives every term (rule 2).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The highest fence issued. `None` only before the first grant.
    pub(super) counter: Option<Fence>,
    holding: Option<Holding>,
    reserved: Option<(ReplicaId, Moment)>,
    /// How the last ended term ended. While a claim lives this is what its holder was told.
    predecessor: Predecessor,
    /// The attempts of the last two ended terms, the latest first: they are never granted again. Two, so that a term as
    /// short as a round trip does not make the store forget the one before.
    spent: [Option<AttemptId>; 2],
    /// Left by the last ended term, not yet given to anyone.
    note: Option<Note>,
}

/// The claim that lives, and the answers that its acquire got: a repetition gets the same (rule 4).
#[derive(Debug, Clone, PartialEq)]
struct Holding {
    claim: Claim,
    granted: Moment,
    expires: Moment,
    crash_witness: bool,
    trace: TraceContext,
    inherited: Option<Note>,
}

/// What the winner of a lease is told beside its claim.
pub(super) struct Legacy {
    pub(super) claim: Claim,
    pub(super) predecessor: Predecessor,
    pub(super) inherited: Option<Note>,
}

/// A name of which nothing is known.
impl Default for Entry {
    fn default() -> Self {
        let predecessor = Predecessor::None;
        Self { counter: None, holding: None, reserved: None, predecessor, spent: [None; 2], note: None }
    }
}

impl Entry {
    /// Notices by the clock alone that a claim or a reservation is over.
    pub(super) fn settle(&mut self, now: Moment) {
        if self.holding.as_ref().is_some_and(|holding| holding.expires <= now) {
            self.end(TraceContext::NONE, Predecessor::Expired);
        }
        if self.reserved.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.reserved = None;
        }
    }

    /// Extends the claim of this very attempt, if it lives.
    pub(super) fn repeat(&mut self, bid: &Bid, now: Moment) -> Option<Legacy> {
        let holding = self.holding.as_mut().filter(|h| h.claim.attempt == bid.attempt)?;
        holding.expires = now.after(bid.ttl);
        Some(Legacy {
            claim: holding.claim.clone(),
            predecessor: self.predecessor.clone(),
            inherited: holding.inherited.clone(),
        })
    }

    /// Who keeps `replica` from being granted, if anyone does.
    pub(super) fn obstacle(&self, replica: &ReplicaId, now: Moment) -> Option<Held> {
        let fence = self.counter?;
        let (by, until, reserved) = match (&self.holding, &self.reserved) {
            (Some(holding), _) => (&holding.claim.replica, holding.expires, false),
            (None, Some((heir, until))) if heir != replica => (heir, *until, true),
            (None, _) => return None,
        };
        Some(Held { by: by.clone(), fence, remaining: until.since(now), reserved })
    }

    /// Begins a term. The caller has settled the entry and found no obstacle.
    pub(super) fn begin(&mut self, bid: &Bid, fence: Fence, now: Moment) -> Legacy {
        let claim = bid.granted(fence);
        let inherited = self.note.take();
        self.counter = Some(fence);
        self.reserved = None;
        self.holding = Some(Holding {
            claim: claim.clone(),
            granted: now,
            expires: now.after(bid.ttl),
            crash_witness: bid.crash_witness,
            trace: bid.trace.clone(),
            inherited: inherited.clone(),
        });
        Legacy { claim, predecessor: self.predecessor.clone(), inherited }
    }

    /// Extends exactly this claim.
    pub(super) fn extend(&mut self, claim: &Claim, expires: Moment) -> bool {
        match &mut self.holding {
            Some(holding) if holding.claim == *claim => {
                holding.expires = expires;
                true
            }
            _ => false,
        }
    }

    /// Whether exactly this claim lives.
    pub(super) fn holds(&self, claim: &Claim) -> bool {
        self.holding.as_ref().is_some_and(|holding| holding.claim == *claim)
    }

    /// Whether the term of an attempt has ended.
    pub(super) fn is_spent(&self, attempt: AttemptId) -> bool {
        self.spent.contains(&Some(attempt))
    }

    /// The claim that lives.
    pub(super) fn claim(&self) -> Option<&Claim> {
        self.holding.as_ref().map(|holding| &holding.claim)
    }

    /// Whether the claim that lives ends with its holder's process.
    pub(super) fn is_witnessed(&self) -> bool {
        self.holding.as_ref().is_some_and(|holding| holding.crash_witness)
    }

    /// Ends the term, in `trace` if there is one, else in the trace of its acquire. A note that nobody will be given
    /// any more goes with it.
    pub(super) fn end(&mut self, trace: TraceContext, fate: impl FnOnce(Ended) -> Predecessor) {
        if let Some(holding) = self.holding.take() {
            let trace = if trace == TraceContext::NONE { holding.trace } else { trace };
            self.spent = [Some(holding.claim.attempt), self.spent[0]];
            self.predecessor =
                fate(Ended { fence: holding.claim.fence, replica: holding.claim.replica, trace });
            self.note = None;
        }
    }

    /// Leaves a note for the next term, and keeps the vacancy for an heir.
    pub(super) fn bequeath(&mut self, note: Option<Note>, heir: Option<(ReplicaId, Duration)>, now: Moment) {
        self.note = note;
        self.reserved = heir.map(|(heir, window)| (heir, now.after(window)));
    }

    /// What somebody is told whose claim is not the living one.
    pub(super) fn not_holder(&self) -> NotHolder {
        NotHolder {
            holder: self.claim().map(|claim| (claim.replica.clone(), claim.fence)),
            highest: self.counter,
        }
    }

    /// What is shown to people and candidates.
    pub(super) fn record(&self, name: &LeaseName, now: Moment) -> LeaseRecord {
        let mut settled = self.clone();
        settled.settle(now);
        let state = match (settled.holding, settled.reserved) {
            (Some(holding), _) => LeaseState::Held {
                claim: holding.claim,
                remaining: holding.expires.since(now),
                held_for: now.since(holding.granted),
                crash_witness: holding.crash_witness,
            },
            (None, Some((heir, until))) => LeaseState::Reserved { heir, remaining: until.since(now) },
            (None, None) => LeaseState::Vacant,
        };
        LeaseRecord { name: name.clone(), counter: settled.counter, state, predecessor: settled.predecessor }
    }
}
