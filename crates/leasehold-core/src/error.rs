//! What a store could not do, and what is therefore known.

use crate::LeaseName;
use std::{fmt, sync::Arc, time::Duration};

/// A store's failure: what was being done, on which store and lease, why it failed, and whether to try again.
///
/// Whether the store *did* what was asked is said by the outcome that carries the error: `Refused` means
/// certainly not, `Unknown` means perhaps.
#[derive(Debug, Clone, thiserror::Error)]
pub struct StoreError {
    kind: StoreErrorKind,
    verb: Verb,
    store: Arc<str>,
    lease: Option<LeaseName>,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Why a store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No connection, or it broke.
    #[error("the store cannot be reached; check that it runs and that its address is right")]
    Unreachable,
    /// No answer in the time that was left.
    #[error("the store did not answer within {0:?}")]
    TimedOut(Duration),
    /// Another process kept the store locked longer than the store's lock timeout.
    #[error("the store stayed locked by another process for {0:?}")]
    Locked(Duration),
    /// The store accepts no writes.
    #[error("the store is read-only; make it writable, or name another one")]
    ReadOnly,
    /// The store has no room.
    #[error("the store is full; free some space")]
    Full,
    /// The store refused us.
    #[error("the store denied access; check the credentials and permissions")]
    Denied,
    /// What is stored under our key was not written by this library, or is damaged. It was left as it is.
    #[error(
        "what the store keeps at {key} is damaged or not ours ({problem}); it was left untouched: look at it, then remove or repair it"
    )]
    Corrupt {
        /// Which key, row or file.
        key: Arc<str>,
        /// What is wrong with it.
        problem: Arc<str>,
    },
    /// The store belongs to another program.
    #[error("this is not a leasehold store ({found}); it was left untouched: name another place")]
    Foreign {
        /// What it seems to be.
        found: Arc<str>,
    },
    /// The store was laid out by a newer version of this library.
    #[error("the store has layout version {found}, this program knows up to {known}: update this program")]
    NewerSchema {
        /// Its version.
        found: i64,
        /// The newest this library knows.
        known: i64,
    },
    /// No fence is left above the highest that was seen.
    #[error("the fence counter is exhausted or damaged: there is no token above {0}")]
    FenceExhausted(crate::Fence),
    /// The lease was never granted under this fence, as far as the store knows.
    #[error(
        "fence {fence} was never issued for this lease (this store issued {}); resource {resource} was not touched: \
         check which lease and which store the fence is from",
        highest.map_or_else(|| "none".to_owned(), |highest| format!("{highest} at most"))
    )]
    NeverIssued {
        /// The fence that was presented.
        fence: crate::Fence,
        /// The highest that the store issued.
        highest: Option<crate::Fence>,
        /// The resource it was presented to.
        resource: crate::ResourceName,
    },
    /// An acquire came with the attempt id of a term that has ended: a request that was on its way for too long, or was
    /// sent twice. It is never granted again; a new acquisition needs a new attempt id.
    #[error("the term of this attempt has already ended; ask again with a new attempt id")]
    SpentAttempt,
    /// The claim was made with a crash witness, and the store cannot see the witness of this process now, so it does not
    /// extend the claim. The store connects its witness again by itself.
    #[error("the store does not see the crash witness of this process; it is being connected again")]
    Unwitnessed,
    /// The store refuses to write for a reason that its operator must mend; it says which.
    #[error("the store takes no writes ({0}); mend that, or name another store")]
    NotWriting(Arc<str>),
    /// The configuration cannot work.
    #[error("{0}")]
    Config(Arc<str>),
    /// The store was closed by this process.
    #[error("the store was closed by this process")]
    Closed,
    /// Anything else; the source says what.
    #[error("the store failed")]
    Other,
}

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants are the verbs of the store contract")]
pub enum Verb {
    Connect,
    Acquire,
    Renew,
    Release,
    ForceRelease,
    Inspect,
    List,
    Watch,
    Announce,
    Withdraw,
    Candidates,
    Post,
    Inbox,
    CheckFence,
    Diagnose,
}

impl Verb {
    /// The word for it, as in `acquire` or `check-fence`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::ForceRelease => "force-release",
            Self::Inspect => "inspect",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Announce => "announce",
            Self::Withdraw => "withdraw",
            Self::Candidates => "candidates",
            Self::Post => "post",
            Self::Inbox => "inbox",
            Self::CheckFence => "check-fence",
            Self::Diagnose => "diagnose",
        }
    }
}

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Soon: the trouble is of the kind that passes by itself.
    Soon,
    /// Only after somebody acted (made room, gave rights, repaired a value); trying rarely is harmless.
    AfterRepair,
    /// Not with this program and this configuration.
    Never,
}

/// Equal if they tell the same story; causes are not compared, for most cannot be.
impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        (&self.kind, self.verb, &self.store, &self.lease)
            == (&other.kind, other.verb, &other.store, &other.lease)
    }
}

impl StoreError {
    /// A failure of `verb` on `store`, whose address must hold no secret.
    #[must_use]
    pub fn new(kind: StoreErrorKind, verb: Verb, store: impl Into<Arc<str>>) -> Self {
        Self { kind, verb, store: store.into(), lease: None, source: None }
    }

    /// Names the lease.
    #[must_use]
    pub fn on(mut self, lease: &LeaseName) -> Self {
        self.lease = Some(lease.clone());
        self
    }

    /// Attaches the cause. Its text must hold no secret.
    #[must_use]
    pub fn because(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Why.
    #[must_use]
    pub const fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }

    /// What was being done.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.verb
    }

    /// The lease, if it concerned one.
    #[must_use]
    pub const fn lease(&self) -> Option<&LeaseName> {
        self.lease.as_ref()
    }

    /// The store's address, without secrets.
    #[must_use]
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Whether trying again can help.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        match self.kind {
            StoreErrorKind::Unreachable
            | StoreErrorKind::TimedOut(_)
            | StoreErrorKind::Locked(_)
            | StoreErrorKind::Unwitnessed
            // With another attempt id.
            | StoreErrorKind::SpentAttempt
            | StoreErrorKind::Other => Retry::Soon,
            StoreErrorKind::ReadOnly
            | StoreErrorKind::NotWriting(_)
            | StoreErrorKind::Full
            | StoreErrorKind::Denied
            | StoreErrorKind::Corrupt { .. }
            | StoreErrorKind::FenceExhausted(_) => Retry::AfterRepair,
            StoreErrorKind::Foreign { .. }
            | StoreErrorKind::NewerSchema { .. }
            | StoreErrorKind::NeverIssued { .. }
            | StoreErrorKind::Config(_)
            | StoreErrorKind::Closed => Retry::Never,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verb.as_str())?;
        if let Some(lease) = &self.lease {
            write!(f, " of lease {lease}")?;
        }
        write!(f, " on {}: {}", self.store, self.kind)?;
        // The source is part of the sentence: people read errors in one line more often than as a chain.
        let mut source = self.source.as_deref().map(|s| s as &dyn std::error::Error);
        let mut causes = Vec::new();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        for (at, cause) in causes.iter().enumerate() {
            // Many errors tell their cause in their own words already, and it is told once.
            let told = |other: &String| other.contains(cause.as_str());
            if !causes[..at].iter().any(told) && !causes[at + 1..].iter().any(|o| told(o) && o != cause) {
                write!(f, ": {cause}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Self>>);

    fn told(layers: &[&'static str]) -> String {
        let chain = layers.iter().rev().fold(None, |inner, words| Some(Box::new(Layer(words, inner))));
        let error = StoreError::new(StoreErrorKind::Closed, Verb::Connect, "x:");
        match chain {
            Some(chain) => error.because(*chain).to_string(),
            None => error.to_string(),
        }
    }

    #[test]
    fn each_cause_is_told_once_however_many_layers_repeat_it() {
        let head = "connect on x:: the store was closed by this process";
        assert_eq!(told(&[]), head);
        assert_eq!(told(&["outer", "inner"]), format!("{head}: outer: inner"));
        assert_eq!(told(&["timed out", "timed out"]), format!("{head}: timed out"));
        assert_eq!(told(&["connecting: refused", "refused"]), format!("{head}: connecting: refused"));
        assert_eq!(told(&["no database", "code 26: no database"]), format!("{head}: code 26: no database"));
    }
}
