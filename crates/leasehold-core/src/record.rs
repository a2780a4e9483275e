//! What a store shows of a lease to people and to candidates.

use crate::{Claim, Fence, LeaseName, Predecessor, ReplicaId};
use std::time::Duration;

/// A lease, seen at one instant of the store's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseRecord {
    /// Its name.
    pub name: LeaseName,
    /// The highest fence the store knows for it; `None` if it was never held as far as the store remembers.
    pub counter: Option<Fence>,
    /// Who holds it.
    pub state: LeaseState,
    /// How the term before the present one ended; for a vacant lease, how the last one ended.
    pub predecessor: Predecessor,
}

/// Held, reserved, or vacant, by the store's clock.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseState {
    /// Somebody holds it.
    Held {
        /// The whole claim, attempt id included: this is how an unknown outcome is settled.
        claim: Claim,
        /// Until it expires, unless renewed.
        remaining: Duration,
        /// Since it was granted.
        held_for: Duration,
        /// Whether the end of the holder's process ends the claim at once.
        crash_witness: bool,
    },
    /// Released in favour of an heir who has not taken it yet.
    Reserved {
        /// The only replica that is granted now.
        heir: ReplicaId,
        /// Until anyone is.
        remaining: Duration,
    },
    /// Anyone may have it.
    Vacant,
}

impl LeaseRecord {
    /// A name of which the store knows nothing.
    #[must_use]
    pub const fn unknown(name: LeaseName) -> Self {
        Self { name, counter: None, state: LeaseState::Vacant, predecessor: Predecessor::None }
    }

    /// The claim, if it is held.
    #[must_use]
    pub const fn claim(&self) -> Option<&Claim> {
        match &self.state {
            LeaseState::Held { claim, .. } => Some(claim),
            LeaseState::Reserved { .. } | LeaseState::Vacant => None,
        }
    }

    /// Until anyone may be granted, unless something is renewed or released meanwhile; zero if vacant.
    #[must_use]
    pub const fn remaining(&self) -> Duration {
        match &self.state {
            LeaseState::Held { remaining, .. } | LeaseState::Reserved { remaining, .. } => *remaining,
            LeaseState::Vacant => Duration::ZERO,
        }
    }

    /// Whether both tell the same story, times aside: a renewal changes nothing here, a new term does.
    #[must_use]
    pub fn same_standing(&self, other: &Self) -> bool {
        let key = |r: &Self| {
            let heir = match &r.state {
                LeaseState::Reserved { heir, .. } => Some(heir.clone()),
                _ => None,
            };
            (
                r.counter,
                r.claim().map(|c| (c.fence, c.attempt)),
                heir,
                r.predecessor.fence(),
                r.predecessor.fate(),
            )
        };
        self.name == other.name && key(self) == key(other)
    }
}
