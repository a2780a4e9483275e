//! Leases, elections and fenced work as supervised actors.
//!
//! A service that runs as several replicas needs some things done by one of them at a time. A lease gives that right to
//! one replica, and expires if its holder stops; a *fence token* lets the protected resource refuse a holder that
//! wakes up too late. Here the worker is the renewer's child in a [`ractor`] supervision tree: whatever ends the renewal
//! ends the work.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold::Node;
//!
//! let node = Node::connect("memory:").await?;
//! let run = node
//!     .lease("invoice-run")
//!     .hold(|term| async move {
//!         let permit = term.check()?;
//!         Ok::<_, leasehold::Lost>(format!("invoices written under fence {}", permit.fence()))
//!     })
//!     .await?;
//! assert_eq!(run.output?, "invoices written under fence 1");
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//! * [`Node`]: one replica's presence at one store; [`connect`] opens a store by its address.
//! * [`Lease`]: hold once, while a future runs. [`ElectionBuilder`] and [`Election`]: want to lead from now on.
//! * [`Term`]: what a worker gets. [`Worker`] and [`Notice`]: an actor as a worker.
//! * [`Fenced`]: a resource behind a fence. [`Standings`], [`Position`], [`Event`]: what observers see.
//! * [`shutdown`]: ending in order on a signal. `session_lock` (feature `postgres`): work under a PostgreSQL session's lock.
//! * [`leasehold_core`], re-exported: the words, the machines, and the contract of a store.

mod calls;
mod candidate;
mod clerk;
mod connect;
mod context;
mod election;
mod ended;
mod error;
mod event;
mod fenced;
mod handoff;
mod holder;
mod lease;
mod mailroom;
mod node;
mod renewer;
mod reply;
mod seed;
#[cfg(feature = "postgres")]
pub mod session_lock;
pub mod shutdown;
mod standing;
mod telemetry;
mod term;
mod terms;
mod watcher;
mod worker;

pub use connect::connect;
pub use election::{ElectError, Election, ElectionBuilder, Position};
pub use error::{ConfigError, HoldError, StartError};
pub use event::{Event, Happening, WorkerOutcome};
pub use fenced::{Fenced, FencedError, Stray};
pub use handoff::{HandOffError, Handover};
pub use lease::{Finished, Lease};
pub use leasehold_core;
pub use leasehold_core::{
    Acquire, Admit, AttemptId, Bid, BootClock, BoxFuture, Candidacy, Claim, Clock, Durability, EncodeError,
    Ended, Envelope, Fate, Fence, FenceGate, FenceRangeError, Finding, Force, GateGuard, Grant, Granted,
    Held, Inbox, JeopardyCause, Keeper, LeaseName, LeaseRecord, LeaseState, LeaseStore, Lost, LostCause,
    Mail, ManualClock, MemoryStore, Moment, NameError, NotHolder, Note, NoteFault, NoteTooLarge, Parting,
    Permit, PermitError, Predecessor, Reach, Release, Renew, Renewal, ReplicaId, ResourceName, Retry, Roster,
    Scope, Severity, SharedStore, Sighting, Stale, Standing, Store, StoreError, StoreErrorKind, Timing,
    TimingError, TokioClock, TraceContext, Traits, UnreadableNote, Verb, Watch, WatchFeed,
    campaign::{Defeat, Obstacle},
    handoff::{Ending, HandoffId, Kept, Preference, Step, To, Vacated},
};
pub use node::{Node, NodeBuilder, Stopped};
pub use standing::{Standings, Stood};
pub use telemetry::Propagator;
pub use term::Term;
pub use worker::{BoxError, Notice, Pulse, Worker};
