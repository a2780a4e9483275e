//! The verbs and their own arguments.

use super::{Holding, duration};
use crate::exit;
use clap::{Args, Subcommand};
use leasehold::{LeaseName, ReplicaId, ResourceName};
use std::{ffi::OsString, time::Duration};

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Hold the lease while a command runs, then end with its status.
    ///
    /// The command runs in a process group of its own, with our standard streams and, if there is one, our terminal;
    /// signals go to the whole group. What it leaves in its group when it exits gets TERM and, after the grace, KILL; the
    /// lease is released only when nothing of the group is left. If renewals fail, TERM comes a grace before the lease
    /// may be another's, and KILL before it is. If leasehold itself is killed, so is the group.
    #[command(after_help = exit::OF_RUN, after_long_help = long(exit::OF_RUN))]
    Run(Run),
    /// Campaign for ever; run a command whenever leading; end on a signal.
    ///
    /// TERM and INT end the command (TERM, the grace, KILL; a second INT is KILL), release the lease and end with status
    /// 0. Other signals go to the command's process group. When the command exits, the lease is released and, after a
    /// pause that grows if this happens often, another term is sought.
    #[command(after_help = exit::OF_ELECT, after_long_help = long(exit::OF_ELECT))]
    Elect(Elect),
    /// Show who holds what.
    #[command(after_help = exit::OF_OTHERS)]
    Status(List),
    /// Write a line per event, vacancy included, until interrupted.
    #[command(after_help = exit::OF_OTHERS)]
    Watch(List),
    /// Ask whoever leads to hand over, and tell how it goes.
    ///
    /// For leases of `elect`, and of services built on the library. The leader asks a candidate, which warms up; then the
    /// leader's command is asked to end (TERM), and when it has ended the lease is the candidate's, with the note that was
    /// left. Nobody is forced: see `release` for that.
    #[command(after_help = exit::OF_HANDOFF)]
    Handoff(Handoff),
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

impl Verb {
    /// Whether it is there to hold a lease, and so is endangered by what endangers leases.
    #[must_use]
    pub const fn holds_leases(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Elect(_))
    }
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

/// `handoff`
#[derive(Debug, Args)]
pub struct Handoff {
    /// The lease.
    #[arg(value_name = "NAME", value_parser = |name: &str| LeaseName::new(name))]
    pub name: LeaseName,
    /// Who shall lead [default: the first candidate that is ready].
    #[arg(long, value_name = "REPLICA", value_parser = |id: &str| ReplicaId::new(id))]
    pub to: Option<ReplicaId>,
    /// How long the leader may take to find a successor and to let its work finish.
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = duration::span, allow_hyphen_values = true)]
    pub within: Duration,
    /// Why; shown to whoever looks at the leader's events. At most 500 bytes are sent.
    #[arg(long, value_name = "TEXT", default_value = "asked by an operator")]
    pub reason: String,
    /// Write JSON, one object a step.
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
    /// How long to wait for the gate while another command holds it [default: for ever].
    #[arg(long, value_name = "DUR", requires = "command", value_parser = duration::span, allow_hyphen_values = true)]
    pub wait: Option<Duration>,
    /// Do not wait: end with status 75 if another command holds the gate.
    #[arg(long = "try", requires = "command", conflicts_with = "wait")]
    pub try_once: bool,
    /// The exit status when the gate was not got in time.
    #[arg(long, value_name = "N", requires = "command", default_value_t = exit::Exit::NOT_ACQUIRED)]
    pub conflict_exit_code: u8,
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
    /// Lay out the store's schema in its PostgreSQL database, or bring it up to this program, and measure nothing. Done
    /// already is no error; any number of hosts may do it at once.
    #[arg(long, conflicts_with_all = ["length", "json", "print_sql"])]
    pub migrate: bool,
    /// Write the statements that `--migrate` would run on an empty PostgreSQL database, for whoever may run them.
    #[arg(long, conflicts_with_all = ["length", "json"])]
    pub print_sql: bool,
    /// With `--print-sql`: also those that let this role use the store, and do nothing else.
    #[arg(long, value_name = "ROLE", requires = "print_sql")]
    pub role: Option<String>,
}

/// What the command of a lease finds in its environment.
const ENVIRONMENT: &str = "\
Environment of the command:
  LEASEHOLD_NAME         the lease
  LEASEHOLD_FENCE        the fence token of this term: present it with every write
  LEASEHOLD_REPLICA      this replica
  LEASEHOLD_STORE        the store's URL
  LEASEHOLD_PREDECESSOR  how the term before ended: none, released, handed-off, expired,
                         crashed, forced
  LEASEHOLD_NOTE_IN      a file with the note that the term before left, if it left one
  LEASEHOLD_NOTE_OUT     a file to write a note for the next term to, of at most 256 KiB";

fn long(statuses: &str) -> String {
    format!("{ENVIRONMENT}\n\n{statuses}")
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
