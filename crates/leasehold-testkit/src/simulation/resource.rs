//! The simulated fenced resource.

use super::Mutant;
use crate::history::{Event, What};
use leasehold_core::Claim;

#[derive(Debug)]
pub(super) struct Resource {
    highest: u64,
    seq: u64,
    checks: bool,
}

impl Resource {
    pub(super) fn new(mutant: Option<Mutant>) -> Self {
        Self { highest: 0, seq: 0, checks: mutant != Some(Mutant::FenceUnchecked) }
    }

    /// Decides on a write, and writes the decision down.
    pub(super) fn write(&mut self, at: u64, claim: &Claim) -> Event {
        let fence = claim.fence.get();
        let accepted = !self.checks || fence >= self.highest;
        self.highest = self.highest.max(fence);
        self.seq += 1;
        let what = What::Wrote { resource: "resource".into(), seq: self.seq, accepted };
        Event { at, lease: claim.name.to_string(), replica: claim.replica.to_string(), fence, what }
    }
}
