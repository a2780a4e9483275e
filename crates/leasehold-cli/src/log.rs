//! The log: what `tracing` reports, on standard error.

use crate::{cli::Color, outlet::Outlet};
use leasehold::Finding;
use std::io::{self, IsTerminal, Write};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// The least severe messages to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Level {
    /// None.
    Off,
    /// What failed.
    Error,
    /// What endangers a lease.
    Warn,
    /// Acquisitions, releases, losses.
    Info,
    /// Each renewal.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    const fn filter(self) -> LevelFilter {
        match self {
            Self::Off => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

/// Starts the log. A second call changes nothing.
///
/// `findings`: whether to tell what in a store's settings endangers leases. Those who hold leases are warned; a question that
/// is asked once, perhaps by a script each minute, would only repeat it, and `doctor` shows it in its own place.
pub fn start(level: Level, color: Color, findings: bool) {
    // The actor framework reports each of its own life-cycle steps, and the ends of actors that were ended on purpose
    // as errors; what matters of them is reported by the library in its own words.
    let mut filter = Targets::new().with_default(level.filter()).with_target("ractor", LevelFilter::OFF);
    if !findings && level < Level::Info {
        filter = filter.with_target(Finding::LOG_TARGET, LevelFilter::OFF);
    }
    let lines = tracing_subscriber::fmt::layer().with_ansi(coloured(color)).with_writer(|| Stderr);
    tracing_subscriber::registry().with(filter).with(lines).try_init().ok();
}

fn coloured(color: Color) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            io::stderr().is_terminal()
                && !set("NO_COLOR")
                && std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
        }
    }
}

/// A writer that never waits and never fails.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        Outlet::stderr().put(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
