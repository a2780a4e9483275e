//! Seeds of jitter. Random, so that replicas which were in trouble together do not return in step.

use leasehold_core::AttemptId;

/// The number in an id.
pub(crate) fn of(id: AttemptId) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|at| id.as_bytes()[at]))
}

/// A fresh one.
pub(crate) fn fresh() -> u64 {
    of(AttemptId::random())
}
