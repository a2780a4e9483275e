//! One thing that happened, on one monotonic clock.

use serde::{Deserialize, Serialize};

/// One thing that happened to a lease.
///
/// All times are nanoseconds on one monotonic clock that every writer of the history reads: the boot clock of one host
/// for processes, virtual time in a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: u64,
    /// Which lease.
    pub lease: String,
    /// Who says so; for the store and the resource, whom it concerns.
    pub replica: String,
    /// Under which fence; 0 where there is none.
    pub fence: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum What {
    /// A replica learned that it holds the lease.
    Granted {
        /// When it had sent the request.
        sent: u64,
        /// The fence of the note that it was given, if any.
        inherited: Option<u64>,
    },
    /// A replica trusts its claim until then.
    Trusted {
        /// The end of trust.
        until: u64,
    },
    /// A replica knows that its term is over.
    Lost,
    /// The renewer of a term ended, by whatever cause.
    RenewerEnded,
    /// The worker of a term began.
    WorkerBegan,
    /// The worker of a term was joined.
    WorkerEnded,
    /// A worker was at work from `from` to this event.
    Worked {
        /// When it began.
        from: u64,
    },
    /// A resource decided on a write.
    Wrote {
        /// Which resource.
        resource: String,
        /// The resource's own order of its decisions.
        seq: u64,
        /// Whether it accepted the fence.
        accepted: bool,
    },
    /// A replica asks the store to end its claim early.
    Releasing {
        /// Whether it leaves a note.
        note: bool,
    },
    /// Whoever handed its lease over knows that somebody else leads now, under this fence.
    HandedOver,
    /// The store keeps a claim, by its own clock, unless it is renewed or ended.
    Held {
        /// The expiry.
        until: u64,
        /// What made it so.
        by: Step,
    },
    /// The store ended a claim before its expiry.
    Vacated,
    /// A replica wants the lease.
    Wanted,
    /// A replica wants it no more, or is not able to want it.
    Unwanted,
    /// The process of a replica was stopped by the operating system.
    Paused,
    /// It runs again.
    Resumed,
    /// All faults have ended.
    Healed,
}

/// What made a claim live, or live longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// A new term.
    Grant,
    /// The same attempt asked again.
    Repeat,
    /// A new term, of an attempt whose term had ended: nobody waits for it any more.
    Revival,
    /// A renewal.
    Renewal,
}
