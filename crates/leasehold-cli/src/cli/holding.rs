//! Options of the verbs that hold a lease while a command runs.

use super::duration;
use crate::exit::Exit;
use leasehold::{LeaseName, Timing, TimingError};
use std::time::Duration;

/// How a lease is wanted, held and given up.
#[derive(Debug, clap::Args)]
pub struct Holding {
    /// The lease: 1 to 200 bytes of UTF-8 without control characters.
    #[arg(value_name = "NAME", value_parser = |name: &str| LeaseName::new(name))]
    pub name: LeaseName,

    /// How long the store keeps the lease without a renewal, 50ms to 24h. It is renewed every third of it; a long
    /// command needs renewals, not a long ttl.
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = duration::ttl, allow_hyphen_values = true)]
    pub ttl: Duration,

    /// How long to wait for the lease [default: for ever].
    #[arg(long, value_name = "DUR", value_parser = duration::span, allow_hyphen_values = true)]
    pub wait: Option<Duration>,

    /// Ask once, and end with status 75 if another replica holds the lease.
    #[arg(long = "try", conflicts_with = "wait")]
    pub try_once: bool,

    /// How long the command has between TERM and KILL when it must end [default: 2s, or a fifth of the ttl if that is
    /// less].
    #[arg(long, value_name = "DUR", value_parser = duration::span, allow_hyphen_values = true)]
    pub grace: Option<Duration>,

    /// A shell command that is run as often as the lease is renewed; when it fails or hangs, the lease is given up.
    #[arg(long, value_name = "CMD")]
    pub pulse_cmd: Option<String>,

    /// Let the store notice the death of this process, so that the next replica need not wait for the ttl. For work
    /// that is fenced.
    #[arg(long)]
    pub crash_witness: bool,

    /// Who is preferred when several wait: the higher number.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i32,

    /// The exit status when the lease was not acquired.
    #[arg(long, value_name = "N", default_value_t = Exit::NOT_ACQUIRED)]
    pub conflict_exit_code: u8,

    /// The exit status when the lease was lost while the command ran.
    #[arg(long, value_name = "N", default_value_t = Exit::LOST)]
    pub lost_exit_code: u8,
}

impl Holding {
    /// The grace that holds: what was asked for, else 2 s but at most ttl/5, so that a short ttl works unadorned.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace.unwrap_or_else(|| Duration::from_secs(2).min(self.ttl / 5))
    }

    /// The durations, checked against each other.
    ///
    /// # Errors
    /// [`TimingError`] names the numbers that do not go together.
    pub fn timing(&self) -> Result<Timing, TimingError> {
        Timing::new(self.ttl)?.with_grace(self.grace())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Verb, parse};
    use super::*;

    fn holding(options: &[&str]) -> Holding {
        let line = ["leasehold", "run", "n"].iter().chain(options).chain(&["--", "true"]);
        match parse(line.map(Into::into)).unwrap().cli.verb {
            Verb::Run(run) => run.holding,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_grace_fits_every_ttl() {
        for (ttl, grace_ms) in [("50ms", 10), ("300ms", 60), ("1s", 200), ("10s", 2000), ("24h", 2000)] {
            let holding = holding(&["--ttl", ttl]);
            assert_eq!(holding.timing().map(|t| t.grace()), Ok(Duration::from_millis(grace_ms)), "{ttl}");
        }
    }

    #[test]
    fn a_grace_that_was_asked_for_is_kept_or_refused_and_never_bent() {
        assert_eq!(
            holding(&["--ttl=10s", "--grace=5s"]).timing().map(|t| t.grace()),
            Ok(Duration::from_secs(5))
        );
        let refused = holding(&["--ttl=1s", "--grace=2s"]).timing();
        assert!(matches!(refused, Err(TimingError::Triangle { .. })), "{refused:?}");
    }
}
