//! The command line.

use clap::{Parser, ValueEnum};
use std::net::SocketAddr;

/// Wants a lease, and does as it is told.
#[derive(Debug, Parser)]
pub(crate) struct Cast {
    /// Address of the store
    #[arg(long)]
    pub(crate) store: String,
    /// Name of the lease
    #[arg(long)]
    pub(crate) lease: String,
    /// Id of this replica
    #[arg(long)]
    pub(crate) replica: String,
    /// Campaign for ever, hold once, or try once
    #[arg(long)]
    pub(crate) mode: Mode,
    /// How long the store keeps a claim without renewal
    #[arg(long, default_value = "10s")]
    pub(crate) ttl: humantime::Duration,
    /// The end of this process ends the claim
    #[arg(long)]
    pub(crate) crash_witness: bool,
    /// Where the worker writes
    #[arg(long)]
    pub(crate) ledger: Option<SocketAddr>,
    /// Write this often
    #[arg(long)]
    pub(crate) every: Option<humantime::Duration>,
    /// Go on for so long after being asked to end
    #[arg(long, default_value = "0s")]
    pub(crate) linger: humantime::Duration,
    /// How long a shutdown may take
    #[arg(long, default_value = "10s")]
    pub(crate) within: humantime::Duration,
    /// Run everything on one thread
    #[arg(long)]
    pub(crate) one_thread: bool,
    /// Run renewals on a runtime of their own
    #[arg(long)]
    pub(crate) renew_apart: bool,
    /// Ask the lease every millisecond whether it is trusted
    #[arg(long)]
    pub(crate) sample: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    Elect,
    Hold,
    Try,
}
