//! Words that all tests of the handoff use.

use leasehold_core::{
    Fence, LeaseName, Moment, ReplicaId, TraceContext,
    handoff::{Ask, HandoffId, Letter, Message, Otherwise, Plan, To},
};
use std::time::Duration;

pub(super) const MS: Duration = Duration::from_millis(1);

pub(super) fn at(ms: u64) -> Moment {
    Moment::from_nanos(ms * 1_000_000)
}

pub(super) fn replica(name: &str) -> ReplicaId {
    ReplicaId::new(name).expect("a valid name")
}

pub(super) fn lease() -> LeaseName {
    LeaseName::new("lease").expect("a valid name")
}

pub(super) fn fence(number: u64) -> Fence {
    Fence::new(number).expect("a valid fence")
}

pub(super) fn id(number: u128) -> HandoffId {
    HandoffId::from_u128(number)
}

/// Everything lasts 100 ms, but the release is repeated after 10.
pub(super) fn plan() -> Plan {
    let each = MS * 100;
    Plan { answer: each, quiesce: each, join: each, commit: each, retry: MS * 10, window: each }
}

pub(super) const PROPOSE: Message = Message::Propose { stay: Duration::ZERO };

pub(super) fn ask(to: To, within: Duration, otherwise: Otherwise) -> Ask {
    Ask {
        to,
        within,
        otherwise,
        stay: Duration::ZERO,
        by: "a test".into(),
        reason: "a deploy".into(),
        trace: TraceContext::NONE,
    }
}

pub(super) fn letter(handoff: u128, term: u64, message: Message) -> Letter {
    Letter {
        handoff: id(handoff),
        lease: lease(),
        fence: fence(term),
        remaining: MS * 500,
        trace: TraceContext::NONE,
        message,
    }
}
