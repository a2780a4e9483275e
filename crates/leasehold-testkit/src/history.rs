//! Histories of leases, and the invariants checked over them.
//!
//! Replicas, stores and resources write [`Event`]s; each invariant is one function from a history to its
//! [`Violation`]s. The checkers know nothing of the code under test: they also judge logs of other programs.
//!
//! A history in which too little happened proves nothing: [`Traffic::check`] fails it.

pub mod i10_progress;
pub mod i1_no_stale_accepted;
pub mod i2_fences_increase;
pub mod i3_one_claim;
pub mod i4_no_work_past_trust;
pub mod i5_renewer_ends_worker;
pub mod i6_no_release_before_join;
pub mod i7_unknown_is_not_success;
pub mod i9_note_once;
pub mod overlap;

mod event;
mod journal;
mod terms;
mod traffic;
mod violation;

pub use event::{Event, Step, What};
pub use journal::Journal;
pub use traffic::{Traffic, Vacuous};
pub use violation::Violation;

type Check = fn(&[Event]) -> Vec<Violation>;

/// Every safety invariant over one history, ordered by time.
#[must_use]
pub fn safety(history: &[Event]) -> Vec<Violation> {
    let checks: &[Check] = &[
        i1_no_stale_accepted::check,
        i2_fences_increase::check,
        i3_one_claim::check,
        i4_no_work_past_trust::check,
        i5_renewer_ends_worker::check,
        i6_no_release_before_join::check,
        i7_unknown_is_not_success::check,
        i9_note_once::check,
        overlap::check,
    ];
    checks.iter().flat_map(|check| check(history)).collect()
}

#[cfg(test)]
mod tests;
