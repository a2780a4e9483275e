//! Answers and sights for a campaign.

use leasehold_core::{
    AttemptId, Claim, Fence, Granted, Held, LeaseName, LeaseRecord, LeaseState, Predecessor, ReplicaId,
    StoreError, StoreErrorKind, Verb,
    campaign::{Answer, Event},
};
use std::time::Duration;

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const ME: &str = "me";
pub(super) const OTHER: &str = "other";

pub(super) fn replica(name: &str) -> ReplicaId {
    ReplicaId::new(name).expect("a valid name")
}

pub(super) fn claim(by: &str, fence: Fence) -> Claim {
    let name = LeaseName::new("lease").expect("a valid name");
    Claim { name, replica: replica(by), attempt: AttemptId::from_bytes([1; 16]), fence }
}

pub(super) fn granted(fence: Fence, remaining: Duration) -> Answer {
    let predecessor = Predecessor::None;
    Answer::Granted(Granted { claim: claim(ME, fence), remaining, predecessor, inherited: None })
}

pub(super) fn held(fence: Fence, remaining: Duration, reserved: bool) -> Answer {
    Answer::Held(Held { by: replica(OTHER), fence, remaining, reserved })
}

pub(super) fn holding(by: &str, fence: Fence, remaining: Duration) -> LeaseState {
    LeaseState::Held { claim: claim(by, fence), remaining, held_for: Duration::MAX, crash_witness: true }
}

pub(super) fn record(state: LeaseState, counter: Option<Fence>) -> LeaseRecord {
    LeaseRecord { counter, state, ..LeaseRecord::unknown(claim(ME, Fence::FIRST).name) }
}

/// Answers to a bid that help nobody.
pub(super) fn useless_answer(which: u8) -> Answer {
    let error = |kind| StoreError::new(kind, Verb::Acquire, "memory:");
    match which {
        0 => Answer::Refused(error(StoreErrorKind::Unreachable)),
        1 => Answer::Refused(error(StoreErrorKind::Full)),
        2 => Answer::Unknown(error(StoreErrorKind::TimedOut(MS))),
        3 => held(Fence::FIRST, Duration::ZERO, false),
        4 => held(Fence::FIRST, MS * 2000, false),
        _ => granted(Fence::FIRST, Duration::ZERO),
    }
}

/// Answers to a look that help nobody.
pub(super) fn useless_look(which: u8) -> Event {
    let state = match which {
        0 => {
            return Event::LookFailed(StoreError::new(StoreErrorKind::Unreachable, Verb::Inspect, "memory:"));
        }
        1 => holding(OTHER, Fence::FIRST, Duration::ZERO),
        2 => holding(OTHER, Fence::FIRST, MS * 2000),
        3 => LeaseState::Reserved { heir: replica(ME), remaining: Duration::ZERO },
        _ => LeaseState::Vacant,
    };
    Event::Sighted(record(state, Some(Fence::FIRST)))
}
