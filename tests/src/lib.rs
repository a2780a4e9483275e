//! Shared pieces of the whole-system tests: real processes, real signals, a real resource, a real store.
//!
//! # Map
//! * [`Site`]: one test's own store, on each kind of [`Backend`]; [`on_every_store!`] runs a test on all of them.
//! * [`Replica`]: a running `replica`, the small real program that is held, paused, killed and listened to. It obeys
//!   an [`Order`] a line, and what it does comes back as [`Said`].
//! * [`Ledger`]: the fenced resource, served over TCP by the test.
//! * [`WallClock`], [`FullDisk`]: what one replica's system tells it, at the test's command.
//! * [`History`]: all that was said and done, for the checkers of the testkit.
//! * [`Log`], [`Deadline`]: waiting for things that happen, never for time to pass.
//!
//! Every stamp is of the host's boot clock, which all processes of the host share.

mod backend;
mod deadline;
mod history;
mod ledger;
mod log;
mod order;
mod replica;
mod said;
mod shim;
mod site;

pub use backend::Backend;
pub use deadline::{Deadline, PATIENCE};
pub use history::History;
pub use ledger::{Entry, Ledger, Verdict};
pub use log::Log;
pub use order::Order;
pub use replica::{Acquired, Casting, Replica};
pub use said::{Said, What};
pub use shim::{FullDisk, WallClock};
pub use site::{Glance, Site};
