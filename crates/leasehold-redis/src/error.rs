//! What went wrong on the way to a store error: raw faults, and what they are called outside.

use leasehold_core::{LeaseName, StoreError, StoreErrorKind, Verb};
use redis::RedisError;
use std::sync::Arc;

/// A fault as it was met, before it is known for which verb and lease.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Fault {
    /// The client or the server said so.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// We say so.
    #[error(transparent)]
    Known(#[from] StoreErrorKind),
}

/// A fault, and whether the change it interrupted may nevertheless have been made.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// False: certainly nothing was changed.
    pub(crate) perhaps_done: bool,
}

impl<F: Into<Fault>> From<F> for Failure {
    fn from(fault: F) -> Self {
        Self { fault: fault.into(), perhaps_done: false }
    }
}

impl Fault {
    /// A value that we did not write or cannot read.
    pub(crate) fn damage(key: impl Into<Arc<str>>, problem: impl Into<Arc<str>>) -> Self {
        Self::Known(StoreErrorKind::Corrupt { key: key.into(), problem: problem.into() })
    }

    /// A configuration or an argument that cannot work.
    pub(crate) fn config(problem: impl Into<Arc<str>>) -> Self {
        Self::Known(StoreErrorKind::Config(problem.into()))
    }

    /// The fault as the outside knows it.
    pub(crate) fn told(self, store: &Arc<str>, verb: Verb, lease: Option<&LeaseName>) -> StoreError {
        let kind = match &self {
            Self::Known(kind) => kind.clone(),
            Self::Redis(_) => StoreErrorKind::Other,
        };
        let mut error = StoreError::new(kind, verb, store.clone());
        if let Some(lease) = lease {
            error = error.on(lease);
        }
        if matches!(self, Self::Known(_)) { error } else { error.because(self) }
    }
}
