//! Conformance suite, faults, real-server launchers, history checks and simulation for leasehold and its stores.
//!
//! # Map
//! * [`conformance`](mod@conformance): the contract of a store as tests, for our stores and for yours.
//! * [`faults`]: between a program and its store, in process or on the wire.
//! * [`history`]: event logs, and the invariants checked over them.
//! * [`process`] and [`server`]: real programs that end with their test.
//! * [`simulation`]: the machines in virtual time, under seeded faults.
//! * [`stepper`]: dropping a future at each of its awaits.

pub mod conformance;
pub mod faults;
pub mod history;
#[cfg(unix)]
pub mod process;
#[cfg(unix)]
pub mod redis;
pub mod server;
pub mod simulation;
pub mod stepper;

pub use faults::{Fault, Faults, FaultyStore, Proxy};
pub use stepper::Stepper;
