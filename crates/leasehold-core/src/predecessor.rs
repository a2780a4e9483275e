//! How the term before ended.

use crate::{Fence, ReplicaId, TraceContext};
use std::sync::Arc;

/// A term that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its fence.
    pub fence: Fence,
    /// Who held it.
    pub replica: ReplicaId,
    /// The trace in which it was acquired or released, to link to.
    pub trace: TraceContext,
}

/// How the term before this one ended, as the store tells it to whoever acquires next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Predecessor {
    /// The store remembers no term of this name.
    None,
    /// The holder released it after its work had ended.
    Released(Ended),
    /// The holder released it in favour of a named heir.
    HandedOff(Ended),
    /// The holder did not renew in time. It may still be running: only the fence stops it.
    Expired(Ended),
    /// The operating system ended the holder's process (see `crash_witness`).
    Crashed(Ended),
    /// Somebody ended it from outside. The holder may still be running: only the fence stops it.
    Forced {
        /// The term that was ended.
        ended: Ended,
        /// Who did it.
        by: ReplicaId,
        /// The reason that was given.
        reason: Arc<str>,
    },
}

/// [`Predecessor`] without its particulars: what fits in a label, a column or an environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants are those of Predecessor")]
pub enum Fate {
    None,
    Released,
    HandedOff,
    Expired,
    Crashed,
    Forced,
}

impl Fate {
    /// The word for it: `none`, `released`, `handed-off`, `expired`, `crashed`, `forced`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Released => "released",
            Self::HandedOff => "handed-off",
            Self::Expired => "expired",
            Self::Crashed => "crashed",
            Self::Forced => "forced",
        }
    }
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Predecessor {
    /// The term that ended, unless there was none.
    #[must_use]
    pub const fn ended(&self) -> Option<&Ended> {
        match self {
            Self::None => None,
            Self::Released(e) | Self::HandedOff(e) | Self::Expired(e) | Self::Crashed(e) => Some(e),
            Self::Forced { ended, .. } => Some(ended),
        }
    }

    /// Its fence, unless there was none.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.ended().map(|e| e.fence)
    }

    /// How it ended.
    #[must_use]
    pub const fn fate(&self) -> Fate {
        match self {
            Self::None => Fate::None,
            Self::Released(_) => Fate::Released,
            Self::HandedOff(_) => Fate::HandedOff,
            Self::Expired(_) => Fate::Expired,
            Self::Crashed(_) => Fate::Crashed,
            Self::Forced { .. } => Fate::Forced,
        }
    }

    /// Whether the holder's work had provably ended when the term did. If not, the old holder may still be at work.
    #[must_use]
    pub const fn was_orderly(&self) -> bool {
        matches!(self, Self::None | Self::Released(_) | Self::HandedOff(_))
    }
}
