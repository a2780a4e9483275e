//! The verbs and their own arguments.

use super::{Holding, duration};
use crate::exit;
use clap::{Args, Subcommand};
use leasehold::{LeaseName, ResourceName};
use std::{ffi::OsString, time::Duration};

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Hold the lease while a command runs, then end with its status.
    #[command(after_help = exit::OF_RUN)]
    Run(Run),
    /// Campaign for ever; run a command whenever leading; end on a signal.
    #[command(after_help = exit::OF_ELECT)]
    Elect(Elect),
    /// Show who holds what.
    #[command(after_help = exit::OF_OTHERS)]
    Status(List),
    /// Write a line per event, vacancy included, until interrupted.
    #[command(after_help = exit::OF_OTHERS)]
    Watch(List),
    /// End somebody's claim; the next term learns that it was forced.
    #[command(after_help = exit::OF_OTHERS)]
    Release(Release),
    /// Check fence tokens, for scripts that write.
    #[command(subcommand)]
    Fence(Fence),
    /// Measure round trips, clock and runtime lag; show server settings that endanger leases; name a ttl to use.
    #[command(after_help = exit::OF_OTHERS)]
    Doctor(Doctor),
    /// Write completions for a shell to stdout.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write a manual page to stdout, in roff.
    Man {
        /// The verb to explain [default: the program].
        verb: Option<String>,
    },
}

/// `run`
#[derive(Debug, Args)]
pub struct Run {
    /// How the lease is held.
    #[command(flatten)]
    pub holding: Holding,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `elect`
#[derive(Debug, Args)]
pub struct Elect {
    /// How the lease is held.
    #[command(flatten)]
    pub holding: Holding,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `status` and `watch`
#[derive(Debug, Args)]
pub struct List {
    /// The leases [default: all].
    #[arg(value_name = "NAME", value_parser = |name: &str| LeaseName::new(name))]
    pub names: Vec<LeaseName>,
    /// Write JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

/// `release`
#[derive(Debug, Args)]
pub struct Release {
    /// The lease.
    #[arg(value_name = "NAME", value_parser = |name: &str| LeaseName::new(name))]
    pub name: LeaseName,
    /// Say that you know: the holder may still be at work, and only its fence stops it.
    #[arg(long, required = true)]
    pub force: bool,
    /// Why; kept in the store and shown to the next holder. At most 1000 bytes.
    #[arg(long, value_name = "TEXT", required = true, value_parser = reason)]
    pub reason: String,
}

/// `fence`
#[derive(Debug, Subcommand)]
pub enum Fence {
    /// Accept a token for a resource, or refuse it if a higher one was seen; with a command, keep others out while it runs.
    #[command(after_help = exit::OF_FENCE_CHECK)]
    Check(FenceCheck),
}

/// `fence check`
#[derive(Debug, Args)]
pub struct FenceCheck {
    /// The resource that is written to.
    #[arg(value_name = "RESOURCE", value_parser = |name: &str| ResourceName::new(name))]
    pub resource: ResourceName,
    /// The token, as in `$LEASEHOLD_FENCE`.
    #[arg(value_name = "TOKEN", value_parser = token)]
    pub token: leasehold::Fence,
    /// The lease that issued the token.
    #[arg(long, value_name = "NAME", env = "LEASEHOLD_NAME", value_parser = |name: &str| LeaseName::new(name))]
    pub lease: LeaseName,
    /// A command to run while the gate of the resource is held, after `--`.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// How long to measure.
    #[arg(long = "for", value_name = "DUR", default_value = "5s", value_parser = duration::span, allow_hyphen_values = true)]
    pub length: Duration,
    /// Write one JSON object.
    #[arg(long)]
    pub json: bool,
}

fn reason(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("say why: the next holder will want to know".into()),
        1..=1000 => Ok(text.into()),
        bytes => Err(format!("it has {bytes} bytes, at most 1000 are kept")),
    }
}

fn token(text: &str) -> Result<leasehold::Fence, String> {
    let number: u64 = text.parse().map_err(|e| format!("a fence token is a whole number: {e}"))?;
    leasehold::Fence::new(number).map_err(|e| e.to_string())
}
