//! The contract of a store. Every rule here is a test of the conformance suite in `leasehold-testkit`.
//!
//! # Rules an implementation must follow
//!
//! 1. **acquire is one atomic step** on the server: record and fence together. The fence is above the counter and
//!    above the bid's floor, so a store that lost its counter is repaired by whoever remembers.
//! 2. **The counter outlives everything**: release, expiry, force, the record itself. Acquiring again with the same
//!    attempt id, or renewing, does not move it; only a new term does.
//! 3. **renew and release are conditional on the whole claim.** A late or repeated one is a no-op that says so. A
//!    claim that expired by the store's clock is over, even if nobody took the lease since.
//! 4. **Four outcomes.** `Unknown` is for a request that may or may not have been carried out. The same attempt id
//!    gets the same answer: while its claim lives, an acquire repeated with it is granted the same fence again and
//!    extended as by a renewal. An attempt whose term has ended is spent: it is refused, never granted again, at least
//!    until two further terms have begun. A request that was on its way for too long must not take a lease for nobody.
//! 5. **release may name an heir and a window**: until the window ends only the heir is granted, then anyone. It
//!    carries the note and the trace context.
//! 6. **acquire answers with the predecessor**: its fate, fence, note and trace (of the release, else of the acquire).
//!    A note is given to the very next term only; one that an expired term passed over is gone.
//! 7. **watch tells vacancy too**, survives reconnection, and re-reads after it. Expiry may go untold: whoever
//!    waits knows the remaining time. A [live](Scope::Live) scope is one subscription, whatever its names are.
//! 8. **Values we did not write, or cannot read, are an error** that names the key. They are never overwritten.
//! 9. **traits states the promises.** A ttl outside its bounds is `Refused`, in acquire and in renew, never clamped.
//! 10. **Fences stay within 1 ..= 2^53 − 1.** At the end a store refuses; it never wraps.
//! 11. **Expiry is judged by the store's clock alone.** No time of a client is stored or compared.
//! 12. **Names are data**: passed as parameters, encoded without collisions, compared byte by byte.
//!
//! Every future may be dropped at any await: the store then treats the request as sent or as never asked, and its
//! connection stays usable. Callers bound every call by their own deadline.

use crate::{
    Acquire, Admit, Bid, Candidacy, Claim, Envelope, Fence, Force, Inbox, LeaseName, LeaseRecord, Note,
    Release, Renew, ReplicaId, ResourceName, Scope, StoreError, TraceContext, Traits, Watch,
};
use std::{fmt, pin::Pin, sync::Arc, time::Duration};

/// A boxed future, so that the traits can be used as `Arc<dyn Store>`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One renewal: a claim and how long it shall live from now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// The claim.
    pub claim: Claim,
    /// Its new time to live.
    pub ttl: Duration,
}

/// What a holder leaves behind with its release.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parting {
    /// Only this replica is granted, for this long; then anyone.
    pub heir: Option<(ReplicaId, Duration)>,
    /// For the next term.
    pub note: Option<Note>,
    /// The trace in which the lease was released.
    pub trace: TraceContext,
}

/// Leases in a store.
pub trait LeaseStore: Send + Sync + fmt::Debug + 'static {
    /// The store's address without secrets, as errors and spans show it.
    fn address(&self) -> &str;

    /// What the store promises.
    fn traits(&self) -> &Traits;

    /// Asks for a lease. Rules 1, 2, 4, 5, 6.
    fn acquire<'a>(&'a self, bid: &'a Bid) -> BoxFuture<'a, Acquire>;

    /// Renews claims: one answer for each, in their order. Rule 3.
    fn renew<'a>(&'a self, renewals: &'a [Renewal]) -> BoxFuture<'a, Vec<Renew>>;

    /// Ends a claim. Rules 3 and 5.
    fn release<'a>(&'a self, claim: &'a Claim, parting: &'a Parting) -> BoxFuture<'a, Release>;

    /// Ends somebody else's claim. The next term is told who did it and why. `reason` has at most 1,000 bytes; a longer
    /// one is refused. A reservation for an heir is not a claim: it is `Vacant`, and stands.
    fn force_release<'a>(
        &'a self,
        name: &'a LeaseName,
        by: &'a ReplicaId,
        reason: &'a str,
    ) -> BoxFuture<'a, Force>;

    /// The state of one lease. A name never held is [`LeaseRecord::unknown`], not an error.
    fn inspect<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<LeaseRecord, StoreError>>;

    /// Every lease whose name begins with `prefix` (bytes, no wildcards), ordered by name. A damaged record is an
    /// error in its own place and hides no other.
    fn list<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Result<LeaseRecord, StoreError>>, StoreError>>;

    /// Subscribes. Rule 7. The first sightings are the present states.
    fn watch(&self, scope: Scope) -> BoxFuture<'_, Result<Watch, StoreError>>;

    /// Settings and conditions of the store that endanger leases, worst first; empty if all is well.
    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>>;
}

/// Something about a store that an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// A stable word for scripts, such as `tmpfs` or `wal-off`.
    pub code: &'static str,
    /// What was found, what it endangers, and what to do, in one sentence each.
    pub text: String,
}

impl Finding {
    /// The target of the log events by which a store tells its findings when it is opened, so that whoever shows them
    /// otherwise, or does not live long enough to be endangered, can leave them out.
    pub const LOG_TARGET: &'static str = "leasehold::findings";
}

/// How bad a [`Finding`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Leases work, but a foreseeable event will hurt.
    Warning,
    /// Leases on this store do not keep their promises.
    Danger,
}

/// Who wants which lease. Entries expire; they carry no authority.
pub trait Roster: Send + Sync + 'static {
    /// Enters or refreshes a candidacy for `ttl`. The first announcement fixes its place in the order.
    fn announce<'a>(
        &'a self,
        candidacy: &'a Candidacy,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes a candidacy. One that is gone already is no error.
    fn withdraw<'a>(&'a self, candidacy: &'a Candidacy) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The live candidacies, in the order of [`rank`](crate::roster::rank).
    fn candidates<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<Vec<Candidacy>, StoreError>>;
}

/// Letters between replicas: best effort, at most once, bounded in size, number and age.
pub trait Mail: Send + Sync + 'static {
    /// Sends a letter. `Ok` means that the store took it, not that it is read. A body above
    /// [`MAX_LETTER_BYTES`](crate::mail::MAX_LETTER_BYTES) is refused.
    fn post<'a>(&'a self, to: &'a ReplicaId, envelope: &'a Envelope)
    -> BoxFuture<'a, Result<(), StoreError>>;

    /// Opens the inbox of `me`. Letters posted before, and not too old, are in it.
    fn inbox<'a>(&'a self, me: &'a ReplicaId) -> BoxFuture<'a, Result<Inbox, StoreError>>;
}

/// Fence checks kept in the store, for resources that have no memory of their own (files, remote commands, scripts).
///
/// A mark belongs to a pair of resource and lease, for the fences of two leases have no common order.
pub trait FenceGate: Send + Sync + 'static {
    /// Accepts `fence` and remembers it, or refuses it as stale, in one atomic step (invariant I1). A fence that the
    /// lease has never issued is refused too, so that one absurd number cannot shut everyone out for good.
    fn admit<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Admit>;

    /// Admits `fence` and keeps every other holder of the gate out until the guard is dropped: what is written
    /// meanwhile cannot interleave with a later fence's writes. Waits for the present holder of the gate. Dropping
    /// the future gives up waiting.
    fn hold_gate<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Result<GateGuard, Admit>>;
}

/// The gate of a resource, held. Dropping it opens the gate.
pub struct GateGuard(#[allow(dead_code, reason = "held for its drop")] Box<dyn Send + Sync>);

impl GateGuard {
    /// Wraps whatever opens the gate when it is dropped.
    #[must_use]
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self(Box::new(held))
    }
}

impl fmt::Debug for GateGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GateGuard")
    }
}

/// All that leasehold asks of a store.
pub trait Store: LeaseStore + Roster + Mail + FenceGate {}

impl<S: LeaseStore + Roster + Mail + FenceGate> Store for S {}

/// A store that is shared by everything in a process.
pub type SharedStore = Arc<dyn Store>;
