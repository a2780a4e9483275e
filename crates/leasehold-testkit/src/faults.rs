//! Faults to put between a program and its store.
//!
//! * [`FaultyStore`]: around any store, in this process: late, lost, hanging, failing and panicking answers.
//! * [`Proxy`]: around a real connection: delay, black hole, reset, truncation, a cut after the k-th command.

mod fault;
mod plan;
mod proxy;
mod store;

pub use fault::Fault;
pub use plan::{Faults, Mix};
pub use proxy::{Direction, Framing, Proxy};
pub use store::FaultyStore;
