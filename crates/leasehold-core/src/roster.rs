//! Who wants a lease: the roster that gives waiters an order.

use crate::{AttemptId, LeaseName, ReplicaId};

/// A replica's wish to lead, announced for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidacy {
    /// The lease wanted.
    pub name: LeaseName,
    /// Who wants it, for people to read.
    pub replica: ReplicaId,
    /// A nonce for this candidacy, drawn once: two processes with one replica id are two candidates.
    pub id: AttemptId,
    /// Higher is preferred. Default 0.
    pub priority: i32,
}

/// An order of candidates: preferred first, then whoever announced first, then by id, so that all replicas agree.
///
/// Stores return [`Roster::candidates`](crate::Roster::candidates) in this order.
pub fn rank(candidates: &mut [(Candidacy, u64)]) {
    candidates.sort_by(|(a, a_joined), (b, b_joined)| {
        b.priority.cmp(&a.priority).then(a_joined.cmp(b_joined)).then(a.id.cmp(&b.id))
    });
}
