//! What can happen to a lease, in the words of the contract.

use leasehold_core::Predecessor;
use serde::Serialize;

/// One event, named `event` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// This replica wants the lease.
    Campaigning,
    /// This replica holds the lease.
    Acquired {
        /// How the term before ended.
        predecessor: Ended,
        /// From the first request to the grant.
        waited_ms: u64,
        /// How long the claim may be trusted without a renewal, counted from now.
        trusted_ms: u64,
    },
    /// A renewal is missing; the lease is still held.
    Jeopardy {
        /// Why.
        cause: String,
        /// Until the end of trust.
        remaining_ms: u64,
    },
    /// A renewal succeeded.
    Renewed,
    /// The lease is no longer held, not by our choice.
    Lost {
        /// Why.
        cause: String,
    },
    /// The command was asked to end.
    Quiescing {
        /// Who asked: `signal`, `store`, `pulse`.
        by: String,
        /// In words.
        reason: String,
    },
    /// The command has ended and was reaped.
    WorkerEnded {
        /// How.
        outcome: Outcome,
    },
    /// The lease was given back.
    Released {
        /// In whose favour.
        #[serde(skip_serializing_if = "Option::is_none")]
        heir: Option<String>,
    },
    /// Nobody holds the lease.
    Vacant,
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
pub struct Ended {
    /// `none`, `released`, `handed-off`, `expired`, `crashed`, `forced`.
    pub fate: &'static str,
    /// Its fence, unless there was no term before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
}

impl From<&Predecessor> for Ended {
    fn from(predecessor: &Predecessor) -> Self {
        Self { fate: predecessor.fate().as_str(), fence: predecessor.ended().map(|ended| ended.fence.get()) }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// By itself, with this status.
    Exited(u8),
    /// By this signal.
    Signalled(i32),
    /// It could not be started, with the status that shells use for it.
    NotStarted(u8),
}
