//! What a caller of this crate may be told.

use leasehold_core::{LeaseName, Lost, NameError, StoreError, TimingError, campaign::Defeat};
use std::{sync::Arc, time::Duration};

/// A setting was refused. Nothing was sent to the store.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A duration.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// A pulse is wanted more often than renewals look for one.
    #[error(
        "a max_silence of {max_silence:?} is too short: a pulse is looked for once a renewal, every {renew_every:?}; allow more than that"
    )]
    SilenceTooShort {
        /// What was asked for.
        max_silence: Duration,
        /// From one renewal to the next.
        renew_every: Duration,
    },
    /// The store cannot see the end of a process.
    #[error("a {kind} store has no crash witness: leave it off, or use a store that has one")]
    NoCrashWitness {
        /// The kind of store.
        kind: &'static str,
    },
}

/// A lease was not held until its work had ended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// A setting was refused. Nothing was sent to the store.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The lease was not acquired. This replica does not hold it, and the work was not started.
    #[error("lease {name} was not acquired: {defeat}")]
    NotAcquired {
        /// The lease.
        name: LeaseName,
        /// Why: held by another, out of time, or the store failed.
        defeat: Defeat,
    },
    /// The lease was lost, and the work was dropped before its end.
    #[error(transparent)]
    Lost(Lost),
    /// The work panicked. The lease was released after it.
    #[error("the work under lease {name} panicked: {message}")]
    Panicked {
        /// The lease.
        name: LeaseName,
        /// What the panic said.
        message: Arc<str>,
    },
    /// The node was stopped. The work was dropped before its end, or never started.
    #[error("the work under lease {name} was ended, for its node was stopped")]
    Stopped {
        /// The lease.
        name: LeaseName,
    },
}

impl HoldError {
    pub(crate) const fn not_acquired(name: LeaseName, defeat: Defeat) -> Self {
        Self::NotAcquired { name, defeat }
    }
}

/// A node could not be started.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The replica's name was refused.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no tokio runtime, or it is shutting down.
    #[error("a node is started inside a tokio runtime, and there is none, or it is shutting down")]
    NoRuntime,
    /// The node was stopped.
    #[error("the node has been stopped: start another one")]
    Stopped,
}
