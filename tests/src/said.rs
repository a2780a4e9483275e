//! What a replica says, one JSON line each.

use serde::{Deserialize, Serialize};

/// One line of a replica.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// When, in nanoseconds of the host's boot clock.
    pub at: u64,
    /// The wall clock of that process, in milliseconds since 1970, where the library told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<i64>,
    /// The fence of the term, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened. Up to `Overrun` it is what the library told its observer; the rest is of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[allow(
    missing_docs,
    reason = "those above are described at `leasehold::Happening`, the fields by their names"
)]
pub enum What {
    Campaigning,
    Acquired {
        fate: String,
        after: Option<u64>,
        waited_ms: u64,
        trusted_ns: u64,
    },
    Jeopardy {
        cause: String,
        detail: String,
        remaining_ms: u64,
    },
    Renewed {
        remaining_ns: u64,
    },
    ClockAnomaly {
        asked_ms: u64,
        remaining_ms: u64,
    },
    Lost {
        cause: String,
    },
    Quiescing {
        by: String,
    },
    WorkerEnded {
        outcome: String,
    },
    Released,
    Overrun,
    /// The node runs.
    Ready,
    /// The election's stream of standings told that the lease is held and trusted until then.
    StoodHeld {
        until: u64,
    },
    /// The election's stream of standings told a loss.
    StoodLost {
        cause: String,
    },
    /// A worker began its term, which was trusted until then.
    Began {
        trusted_until: u64,
    },
    /// A worker's future was dropped, or returned.
    Ended,
    /// The lease was found to be trusted at both instants, the second just before a write.
    Trusted {
        from: u64,
        to: u64,
    },
    /// The lease was checked, and a write is about to be made.
    InHand {
        text: String,
    },
    /// The ledger took a write.
    Wrote {
        text: String,
    },
    /// The ledger refused a write.
    Stale {
        text: String,
        presented: u64,
        highest: u64,
    },
    /// The lease was checked, and nothing was written.
    Unwritten {
        text: String,
        cause: String,
    },
    /// The ledger could not be reached.
    LedgerGone {
        error: String,
    },
    /// The thread is free again.
    Unblocked,
    /// The last instant at which the lease was found to be trusted, by a thread that looked every millisecond.
    TrustedUntil {
        last: u64,
    },
    /// The held work returned; with the store's answer to the release.
    Finished {
        lost: Option<String>,
        release: Option<String>,
    },
    /// The lease was not held, or not to the end of the work.
    NotHeld {
        error: String,
    },
    /// The owner of the holding was dropped.
    Abandoned,
    /// The runtime was dropped.
    RuntimeDropped,
    /// The node was shut down: `clean`, `unconfirmed` or `killed`.
    Stopped {
        how: String,
    },
    /// The program ends, for this reason.
    Failed {
        error: String,
    },
}
