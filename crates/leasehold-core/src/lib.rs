//! The words, rules and pure machines of leasehold.
//!
//! Nothing here talks to a network or a disk, and nothing here is an actor. Store crates implement the traits of
//! [`store`]; the crate `leasehold` drives the machines from supervised actors.
//!
//! # Map
//! * Words: [`LeaseName`], [`ReplicaId`], [`Fence`], [`Bid`] and [`Claim`], [`Note`], [`Predecessor`], [`TraceContext`].
//! * Time: [`Clock`] and [`Moment`], [`Timing`] with its checked triangle.
//! * Machines: [`campaign`] (wanting a lease), [`tenure`] (having one), [`handoff`] (passing one on), [`backoff`]. What they
//!   prove to a holder:
//!   [`Grant`], [`Permit`], [`Standing`], [`Lost`].
//! * The contract of a store: [`store`] (rules and traits), [`outcome`] (its answers), [`StoreError`], [`LeaseRecord`],
//!   [`Watch`], [`Traits`].

pub mod backoff;
pub mod bounds;
pub mod campaign;
pub mod claim;
pub mod clock;
pub mod error;
pub mod fence;
pub mod grant;
pub mod handoff;
pub mod mail;
pub mod memory;
pub mod name;
pub mod name_set;
pub mod note;
pub mod outcome;
pub mod predecessor;
pub mod record;
pub mod roster;
pub mod standing;
pub mod store;
pub mod tenure;
pub mod timing;
pub mod trace;
pub mod traits;
pub mod watch;

pub use claim::{AttemptId, Bid, Claim};
pub use clock::{BootClock, Clock, ManualClock, Moment, TokioClock};
pub use error::{Retry, StoreError, StoreErrorKind, Verb};
pub use fence::{Fence, FenceRangeError};
pub use grant::{Grant, Keeper, Permit, PermitError};
pub use mail::{Envelope, Inbox};
pub use memory::MemoryStore;
pub use name::{LeaseName, NameError, ReplicaId, ResourceName};
pub use name_set::NameSet;
pub use note::{EncodeError, Note, NoteFault, NoteTooLarge, UnreadableNote};
pub use outcome::{Acquire, Admit, Force, Granted, Held, NotHolder, Release, Renew, Stale};
pub use predecessor::{Ended, Fate, Predecessor};
pub use record::{LeaseRecord, LeaseState};
pub use roster::Candidacy;
pub use standing::{JeopardyCause, Lost, LostCause, Standing};
pub use store::{
    BoxFuture, FenceGate, Finding, GateGuard, LeaseStore, Mail, Parting, Renewal, Roster, Severity,
    SharedStore, Store,
};
pub use timing::{Timing, TimingError};
pub use trace::TraceContext;
pub use traits::{Durability, Reach, Traits};
pub use watch::{Scope, Sighting, Watch, WatchFeed};
