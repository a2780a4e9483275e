//! Whether enough happened that the absence of violations means something.

use super::{
    Event, What,
    terms::{by_lease, claims},
};
use std::collections::BTreeSet;

/// How much of what happened, or must have happened at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Terms that began.
    pub grants: usize,
    /// Terms that began after another replica's.
    pub takeovers: usize,
    /// Terms that began after one that was not given up by its holder.
    pub expiries: usize,
    /// Handoffs whose incumbent learned who leads now.
    pub handovers: usize,
    /// Writes that a resource accepted.
    pub accepted: usize,
    /// Writes that a resource refused.
    pub refused: usize,
}

/// Too little happened: the history proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("too little happened to prove anything: {what} were {found}, at least {needed} are needed")]
pub struct Vacuous {
    /// What was too little.
    pub what: &'static str,
    /// How much of it there was.
    pub found: usize,
    /// How much there must be.
    pub needed: usize,
}

impl Traffic {
    /// Counts a history.
    #[must_use]
    pub fn of(history: &[Event]) -> Self {
        let mut traffic = Self::default();
        for events in by_lease(history).into_values() {
            let claims = claims(&events);
            traffic.grants += claims.len();
            let released: BTreeSet<u64> = events
                .iter()
                .filter(|event| matches!(event.what, What::Releasing { .. }))
                .map(|event| event.fence)
                .collect();
            for pair in claims.windows(2) {
                traffic.takeovers += usize::from(pair[0].grant.replica != pair[1].grant.replica);
                traffic.expiries += usize::from(!released.contains(&pair[0].fence));
            }
            // A history without the store's own view is counted by what its replicas were told.
            if claims.is_empty() {
                let granted = |event: &&&Event| matches!(event.what, What::Granted { .. });
                let terms: Vec<_> = events.iter().filter(granted).collect();
                traffic.grants += terms.len();
                traffic.takeovers +=
                    terms.windows(2).filter(|pair| pair[0].replica != pair[1].replica).count();
            }
            for event in events {
                match event.what {
                    What::HandedOver => traffic.handovers += 1,
                    What::Wrote { accepted: true, .. } => traffic.accepted += 1,
                    What::Wrote { accepted: false, .. } => traffic.refused += 1,
                    _ => {}
                }
            }
        }
        traffic
    }

    /// Fails a history in which there was less of anything than in `self`.
    ///
    /// # Errors
    /// [`Vacuous`] names the first thing of which there was too little.
    pub fn check(self, history: &[Event]) -> Result<Self, Vacuous> {
        let found = Self::of(history);
        self.reached_by(found)?;
        Ok(found)
    }

    /// As [`Traffic::check`], for what was counted before.
    ///
    /// # Errors
    /// [`Vacuous`] names the first thing of which there was too little.
    pub fn reached_by(self, found: Self) -> Result<(), Vacuous> {
        let pairs = [
            ("grants", found.grants, self.grants),
            ("takeovers", found.takeovers, self.takeovers),
            ("expiries", found.expiries, self.expiries),
            ("handovers", found.handovers, self.handovers),
            ("accepted writes", found.accepted, self.accepted),
            ("refused writes", found.refused, self.refused),
        ];
        match pairs.into_iter().find(|(_, found, needed)| found < needed) {
            Some((what, found, needed)) => Err(Vacuous { what, found, needed }),
            None => Ok(()),
        }
    }
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.grants += other.grants;
        self.takeovers += other.takeovers;
        self.expiries += other.expiries;
        self.handovers += other.handovers;
        self.accepted += other.accepted;
        self.refused += other.refused;
    }
}
