//! Conformance suite, faults, real-server launchers, history checks and simulation for leasehold and its stores.
//!
//! # Map
//! * [`conformance`](mod@conformance): the contract of a store as tests, for our stores and for yours.
//! * [`faults`]: between a program and its store, in process or on the wire.
//! * [`history`]: event logs, and the invariants checked over them.
//! * [`process`] and [`server`]: real programs that end with their test; [`redis`] and [`postgres`] are such servers.
//! * [`simulation`]: the machines in virtual time, under seeded faults.
//! * [`stepper`]: dropping a future at each of its awaits.

#[cfg(unix)]
mod certificates;
pub mod conformance;
pub mod faults;
pub mod history;
#[cfg(unix)]
pub mod postgres;
#[cfg(unix)]
pub mod process;
#[cfg(unix)]
pub mod redis;
#[cfg(unix)]
pub mod server;
pub mod simulation;
pub mod stepper;
#[cfg(unix)]
mod tools;

pub use faults::{Fault, Faults, FaultyStore, Proxy};
pub use stepper::Stepper;
