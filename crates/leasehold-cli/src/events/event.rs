//! What can happen to a lease, in the words of the contract.

use leasehold::{Happening, Predecessor};
use serde::Serialize;
use std::time::Duration;

/// One event, named `event` in JSON. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// The replica wants the lease.
    Campaigning,
    /// The replica holds the lease.
    Acquired {
        /// How the term before ended.
        predecessor: Past,
        /// From the beginning of the campaign to the grant; only the holder knows.
        #[serde(skip_serializing_if = "Option::is_none")]
        waited_ms: Option<u64>,
        /// How long the claim may be trusted without a renewal; only the holder knows.
        #[serde(skip_serializing_if = "Option::is_none")]
        trusted_ms: Option<u64>,
    },
    /// A renewal did not succeed; the lease is still held.
    Jeopardy {
        /// Why.
        cause: String,
        /// Until the end of trust.
        remaining_ms: u64,
    },
    /// A renewal succeeded.
    Renewed {
        /// Until the end of trust.
        remaining_ms: u64,
    },
    /// The store's clock does not add up.
    ClockAnomaly {
        /// What was asked for.
        asked_ms: u64,
        /// What the store said is left.
        remaining_ms: u64,
    },
    /// The lease is no longer held, not by the holder's choice.
    Lost {
        /// Why.
        cause: String,
    },
    /// The command was asked to end.
    Quiescing {
        /// Who asked: a replica, or what in this process did.
        by: String,
        /// Why.
        reason: String,
    },
    /// The command and all of its group have ended.
    WorkerEnded {
        /// `finished`, `failed`, `not-started`, `killed`.
        outcome: &'static str,
        /// The command's exit status, 128+n for signal n, where it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u8>,
    },
    /// What was killed does not end.
    Overrun {
        /// How long it was waited for.
        waited_ms: u64,
    },
    /// The lease was given back.
    Released {
        /// In whose favour.
        #[serde(skip_serializing_if = "Option::is_none")]
        heir: Option<String>,
    },
    /// A handoff went a step on, at this replica.
    Handoff {
        /// Which; both replicas tell the same.
        id: String,
        /// The step's word.
        step: &'static str,
        /// The replica at the other side, where the step has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// What else there is to say, for people to read.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Since this replica was asked.
        elapsed_ms: u64,
        /// At the end, if somebody else leads now: how long nobody did, in microseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        gap_us: Option<u64>,
    },
    /// Nobody holds the lease.
    Vacant {
        /// How the last term ended.
        predecessor: Past,
    },
    /// Somebody ended a claim from outside.
    Forced {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// A fence token was refused.
    StaleRefused {
        /// For which resource.
        resource: String,
        /// The token.
        presented: u64,
        /// The highest token seen.
        highest: u64,
    },
}

/// How a term ended, and which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Past {
    /// `none`, `released`, `handed-off`, `expired`, `crashed`, `forced`.
    pub fate: &'static str,
    /// Its fence, unless there was no term before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
}

impl From<&Predecessor> for Past {
    fn from(predecessor: &Predecessor) -> Self {
        Self { fate: predecessor.fate().as_str(), fence: predecessor.fence().map(leasehold::Fence::get) }
    }
}

impl Event {
    /// What the library told, in these words; `None` for what a newer library tells and this program does not know.
    pub(super) fn told(what: &Happening) -> Option<Self> {
        Some(match what {
            Happening::Campaigning => Self::Campaigning,
            Happening::Acquired { predecessor, waited, trusted } => Self::Acquired {
                predecessor: predecessor.into(),
                waited_ms: Some(ms(*waited)),
                trusted_ms: Some(ms(*trusted)),
            },
            Happening::Jeopardy { cause, remaining } => {
                Self::Jeopardy { cause: cause.to_string(), remaining_ms: ms(*remaining) }
            }
            Happening::Renewed { remaining } => Self::Renewed { remaining_ms: ms(*remaining) },
            Happening::ClockAnomaly { asked, remaining } => {
                Self::ClockAnomaly { asked_ms: ms(*asked), remaining_ms: ms(*remaining) }
            }
            Happening::Lost { cause } => Self::Lost { cause: cause.as_str().to_owned() },
            Happening::Quiescing { by, reason } => {
                Self::Quiescing { by: by.to_string(), reason: reason.to_string() }
            }
            Happening::WorkerEnded { outcome } => {
                Self::WorkerEnded { outcome: outcome.as_str(), status: None }
            }
            Happening::Overrun { waited } => Self::Overrun { waited_ms: ms(*waited) },
            Happening::Released { heir } => Self::Released { heir: heir.as_ref().map(ToString::to_string) },
            Happening::Handoff { id, step, elapsed, gap } => Self::Handoff {
                id: id.to_string(),
                step: step.as_str(),
                to: step.partner().map(ToString::to_string),
                why: step.why(),
                elapsed_ms: ms(*elapsed),
                gap_us: gap.map(|gap| u64::try_from(gap.as_micros()).unwrap_or(u64::MAX)),
            },
            Happening::StaleRefused { resource, stale } => Self::StaleRefused {
                resource: resource.to_string(),
                presented: stale.presented.get(),
                highest: stale.highest.get(),
            },
            _ => return None,
        })
    }
}

/// Whole milliseconds, held at the largest number.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
