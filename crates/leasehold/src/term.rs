//! A term: what a worker gets, and what it may rely on.

mod scope;

pub(crate) use scope::Scope;
pub(crate) use scope::panic_text;

use leasehold_core::{
    EncodeError, Fence, Grant, LeaseName, Lost, Note, NoteTooLarge, Permit, PermitError, Predecessor,
    ReplicaId, UnreadableNote,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, sync::Arc, time::Duration};

/// One continuous holding of a lease under one fence, as its worker sees it.
///
/// Cheap to clone; clones see the same deadline. Present [`Term::fence`] with every write to the protected resource,
/// and call [`Term::check`] before each unit of work.
///
/// # What is guaranteed
/// * The fence is higher than that of every term before (I2).
/// * From the end of trust on, [`Term::check`] fails, whether or not anyone noticed yet (I4).
/// * When the term is over the worker is dropped at its next `.await`, and with it everything given to [`Term::spawn`].
///
/// # What is not
/// * Code that blocks its thread cannot be stopped from outside. It can only ask [`Term::check`], and the resource can
///   only compare fences.
/// * Tasks started with plain `tokio::spawn` outlive the term: use [`Term::spawn`].
#[derive(Clone)]
pub struct Term {
    pub(crate) scope: Arc<Scope>,
}

impl Term {
    pub(crate) const fn new(scope: Arc<Scope>) -> Self {
        Self { scope }
    }

    /// The lease.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        self.scope.grant.name()
    }

    /// The replica that holds it: this one.
    #[must_use]
    pub fn replica(&self) -> &ReplicaId {
        self.scope.grant.replica()
    }

    /// The fence token, to be presented with every write.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.scope.grant.fence()
    }

    /// How long the lease may still be trusted without another renewal; zero once it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.scope.grant.remaining()
    }

    /// Whether the lease may be trusted now; compares the clock at the call. About as dear as reading a clock.
    ///
    /// # Errors
    /// [`Lost`] from the end of trust on.
    pub fn check(&self) -> Result<Permit, Lost> {
        self.scope.grant.check()
    }

    /// Leave to begin an operation of at most `op_budget`: refused if it could not finish within the trust left.
    ///
    /// # Errors
    /// [`PermitError`]: the lease is over, or held but not surely for that long.
    pub fn permit(&self, op_budget: Duration) -> Result<Permit, PermitError> {
        self.scope.grant.permit(op_budget)
    }

    /// The grant behind the term, for code that needs only the proof.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        self.scope.grant.grant()
    }

    /// How the term before ended. Unless it [was orderly](Predecessor::was_orderly), its worker may still be running
    /// somewhere, and only the fence keeps its writes out.
    #[must_use]
    pub fn predecessor(&self) -> &Predecessor {
        &self.scope.predecessor
    }

    /// What the term before left, if anything.
    #[must_use]
    pub fn inherited(&self) -> Option<&Note> {
        self.scope.inherited.as_ref()
    }

    /// What the term before left with [`Self::leave_as`], if anything: a value of schema `version`.
    ///
    /// # Errors
    /// [`UnreadableNote`], which still holds the note, and is logged as a warning: it was left as plain bytes, by a program
    /// with another version of the schema, or its value does not fit `T`.
    pub fn inherited_as<T: DeserializeOwned>(&self, version: u32) -> Result<Option<T>, UnreadableNote> {
        let read = self.inherited().map(|note| note.decode(version)).transpose();
        read.inspect_err(
            |error| tracing::warn!(lease = %self.name(), fence = %self.fence(), %error, "unreadable note"),
        )
    }

    /// Waits until this worker is asked to end, and says how long it has for that. A worker that does not end by then
    /// is dropped. Returns at once, every time, after it was asked, unless that was [taken back](Self::is_quiescing).
    pub async fn quiescing(&self) -> Duration {
        self.scope.quiescing().await
    }

    /// Whether this worker is asked to end. What was asked may be taken back, when nobody takes over after all: a worker that
    /// finds so after its unit goes on, and [waits to be asked](Self::quiescing) again.
    #[must_use]
    pub fn is_quiescing(&self) -> bool {
        self.scope.is_quiescing()
    }

    /// Leaves a note for the next term, to be stored with the release. The latest one counts.
    ///
    /// It is lost if the term ends without a release (a crash, an expiry).
    ///
    /// # Errors
    /// [`NoteTooLarge`] above 256 KiB; the note left before stands.
    pub fn leave_note(&self, bytes: impl Into<Arc<[u8]>>) -> Result<(), NoteTooLarge> {
        self.scope.leave_note(Note::new(self.fence(), bytes)?);
        Ok(())
    }

    /// Leaves a value for the next term, as [`Self::leave_note`] does, with the version of the schema it follows; see
    /// [`Note::encode`]. The next term reads it with [`Self::inherited_as`].
    ///
    /// # Errors
    /// [`EncodeError`]: it has no form in JSON, or is too large; the note left before stands.
    pub fn leave_as<T: Serialize + ?Sized>(&self, version: u32, value: &T) -> Result<(), EncodeError> {
        self.scope.leave_note(Note::encode(self.fence(), version, value)?);
        Ok(())
    }

    /// Starts a task that belongs to the term: it runs on the worker's runtime, is aborted when the term ends by any
    /// cause, and is joined before the lease is released (I6). Once the term is over, the task is dropped unstarted.
    ///
    /// If it panics, the term ends as if the worker had: work that is no longer whole must not lead on unnoticed.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.scope.spawn(task);
    }

    /// Shows that the worker moves. Only needed with renewals on a runtime of their own, by a worker actor or a
    /// future that computes for long between its awaits.
    pub fn pulse(&self) {
        self.scope.beat();
    }

    /// Tells that a fenced resource refused this term's fence as stale: the term ends now, and the next campaign bids
    /// above that fence, so that a store which lost its counter heals (unless it is absurdly far above: then the
    /// resource's mark is damaged, and must be repaired).
    pub fn outranked(&self, stale: leasehold_core::Stale) {
        self.scope.outranked(stale);
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Term({:?}, after {:?})", self.scope.grant, self.scope.predecessor.fate())
    }
}

impl From<&Term> for Fence {
    fn from(term: &Term) -> Self {
        term.fence()
    }
}
