//! The actors over a store with faults, under tokio's paused clock: an hour of leases takes milliseconds.
//!
//! One theme a module. Comments name the invariants (I…) and the cases (B…) that a test is about.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod actors {
    mod blocking;
    mod clockwork;
    mod ears;
    mod elections;
    mod fenced;
    mod handoffs;
    mod losses;
    mod notices;
    mod overdue;
    mod refusals;
    mod renewals;
    mod runtimes;
    mod shutdown;
    mod sightings;
    pub(crate) mod stage;
    mod tree;
    mod unknown;
    mod watching;
    mod workers;
}
