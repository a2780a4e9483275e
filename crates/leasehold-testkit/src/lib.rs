//! Conformance suite, faults, real-server launchers, history checks and simulation for leasehold and its stores.
//!
//! # Map
//! * [`conformance`]: the contract of a store as tests, for our stores and for yours.
//! * [`stepper`]: dropping a future at each of its awaits.

pub mod conformance;
pub mod stepper;

pub use stepper::Stepper;
