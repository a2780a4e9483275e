//! The command line: what may be written, and what is refused before anything is touched.
//!
//! [`parse`] ends with status 64 where clap would say 2. A value that may hold a secret (the store's URL) is never
//! part of a message, since it is taken as it is and checked later, redacted.

pub mod duration;
mod holding;
mod verbs;

pub use holding::Holding;
pub use verbs::{Doctor, Elect, Fence, FenceCheck, Handoff, List, Release, Run, Verb};

use crate::{exit::Exit, log, say};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, ValueEnum, parser::ValueSource};
use leasehold::ReplicaId;
use std::{ffi::OsString, path::PathBuf};

/// Run a command on one host of many, under a lease.
///
/// A lease is a named, expiring, exclusive right, kept in a store that all hosts reach. Each holding has a fence
/// token, higher than all before; what the command writes to should refuse lower ones.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, propagate_version = true, max_term_width = 100)]
#[command(disable_help_subcommand = true, after_help = crate::exit::OF_OTHERS)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// What holds for every verb.
    #[command(flatten)]
    pub common: Common,
}

/// Options of every verb.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Common {
    /// The store that keeps the leases, as `sqlite:PATH` or another store's URL [default: a SQLite file in the state
    /// directory of the user].
    // The value in the environment may hold a password, and `--help` is pasted into tickets.
    #[arg(long, global = true, value_name = "URL", env = "LEASEHOLD_STORE", hide_env_values = true)]
    pub store: Option<String>,

    /// What this replica is called; for people, not for safety [default: host-pid-random].
    #[arg(long, global = true, value_name = "ID", env = "LEASEHOLD_REPLICA")]
    #[arg(value_parser = |id: &str| ReplicaId::new(id))]
    pub replica: Option<ReplicaId>,

    /// Append events to this file, one JSON object a line; `-` is stderr.
    #[arg(long, global = true, value_name = "PATH")]
    pub events: Option<PathBuf>,

    /// The least severe messages to write to stderr.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn")]
    pub log: log::Level,

    /// Whether messages are coloured.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When to colour what is written to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// When stderr is a terminal, `NO_COLOR` is not set and `TERM` is not `dumb`.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A command line that was understood.
#[derive(Debug)]
pub struct Parsed {
    /// What was written.
    pub cli: Cli,
    /// Whether `--store` stands on the command line itself, where every user of the host can read it.
    pub store_in_arguments: bool,
}

/// Reads a command line.
///
/// # Errors
/// The exit status, after help, the version or the complaint has been written.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Parsed, Exit> {
    command().try_get_matches_from(arguments).and_then(from_matches).map_err(|told| {
        if told.use_stderr() {
            say::raw(&without_secrets(&told.render().to_string()));
            Exit::Usage
        } else {
            say::out(&told.render().to_string()).ok();
            Exit::Done
        }
    })
}

/// The definition of the command line, for completions and the manual.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

fn from_matches(matches: ArgMatches) -> Result<Parsed, clap::Error> {
    let cli = Cli::from_arg_matches(&matches)?;
    Ok(Parsed { cli, store_in_arguments: store_given(&matches) })
}

/// A complaint quotes what was written, and a store's URL may have been written in the wrong place.
fn without_secrets(complaint: &str) -> String {
    complaint.split_inclusive(char::is_whitespace).map(crate::config::redacted).collect()
}

/// A global option may stand before or after the verb; clap notes its source where it was read.
fn store_given(matches: &ArgMatches) -> bool {
    let here = matches.ids().any(|id| id == "store")
        && matches.value_source("store") == Some(ValueSource::CommandLine);
    here || matches.subcommand().is_some_and(|(_, below)| store_given(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Parsed {
        command().try_get_matches_from(line).and_then(from_matches).unwrap()
    }

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_store_on_the_command_line_is_noticed_wherever_it_stands() {
        assert!(parsed(&["leasehold", "--store", "sqlite:x", "status"]).store_in_arguments);
        assert!(parsed(&["leasehold", "status", "--store=sqlite:x"]).store_in_arguments);
        assert!(
            parsed(&["leasehold", "fence", "check", "r", "1", "--lease", "n", "--store=x"])
                .store_in_arguments
        );
        assert!(!parsed(&["leasehold", "status"]).store_in_arguments);
    }

    #[test]
    fn all_after_the_dashes_belongs_to_the_command() {
        let parsed = parsed(&["leasehold", "run", "n", "--", "env", "--store", "x", "--", "-h"]);
        let Verb::Run(run) = parsed.cli.verb else { panic!("not run") };
        assert_eq!(run.command, ["env", "--store", "x", "--", "-h"]);
        assert!(!parsed.store_in_arguments);
    }
}
