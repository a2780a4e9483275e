//! The actors over a store with faults, under tokio's paused clock: an hour of leases takes milliseconds.
//!
//! One theme a module. Comments name the invariants (I…) and the cases (B…) that a test is about.

mod actors {
    mod losses;
    mod renewals;
    mod shutdown;
    pub(crate) mod stage;
    mod unknown;
    mod workers;
}
