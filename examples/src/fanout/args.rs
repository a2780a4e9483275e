//! The command line.

use clap::Parser;
use std::{net::SocketAddr, num::NonZeroU8, path::PathBuf, time::Duration};

/// One leader reads a feed and fans it out to all replicas; watch it being killed, and another one frozen.
#[derive(Debug, Clone, Parser)]
#[command(name = "fanout", disable_version_flag = true)]
pub struct Args {
    /// Where leases are kept, e.g. sqlite:/tmp/leases.db [default: a SQLite file in a temporary directory]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// How many replicas to start, each a process of its own (2 to 16)
    #[arg(long, value_name = "N", default_value = "3")]
    pub replicas: NonZeroU8,
    /// How long a lease lives without renewal (300ms to 1m)
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = humantime::parse_duration)]
    pub ttl: Duration,
    /// How long the feed runs
    #[arg(long, value_name = "N", default_value = "12")]
    pub seconds: u32,
    /// How often leadership is then handed over, from one replica to the next, while the feed runs on
    #[arg(long, value_name = "N", default_value = "0")]
    pub handoffs: u32,
    /// Print the result as one JSON object instead of the story
    #[arg(long)]
    pub json: bool,
    /// How this program calls itself for one replica.
    #[command(flatten)]
    pub part: Option<Part>,
}

/// What the parent tells a replica.
#[derive(Debug, Clone, clap::Args)]
#[group(requires_all = ["replica", "upstream", "journal", "store"])]
pub struct Part {
    /// Its id.
    #[arg(long, hide = true, required = false)]
    pub replica: String,
    /// Where the parent serves the feed and the directory.
    #[arg(long, hide = true, required = false)]
    pub upstream: SocketAddr,
    /// Its journal.
    #[arg(long, hide = true, required = false)]
    pub journal: PathBuf,
}

/// A combination of arguments that cannot work. Nothing was started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// Too few or too many replicas.
    #[error("--replicas {0}: it takes 2 (one to lead, one to take over) to 16")]
    Replicas(u8),
    /// The ttl is out of range.
    #[error("--ttl {}: the example works from 300ms to 1m", humantime::format_duration(*.0))]
    Ttl(Duration),
    /// The run is too short to see what it should show.
    #[error(
        "--seconds {given}: with a ttl of {} it takes at least {least} to kill a leader, freeze another, and see \
         what becomes of them", humantime::format_duration(*.ttl)
    )]
    Seconds {
        /// The seconds asked for.
        given: u32,
        /// The seconds needed.
        least: u32,
        /// The ttl.
        ttl: Duration,
    },
}

impl Args {
    /// Checks what clap cannot.
    ///
    /// # Errors
    /// See [`ArgsError`].
    pub fn check(&self) -> Result<(), ArgsError> {
        if !(2..=16).contains(&self.replicas.get()) {
            return Err(ArgsError::Replicas(self.replicas.get()));
        }
        if !(Duration::from_millis(300)..=Duration::from_secs(60)).contains(&self.ttl) {
            return Err(ArgsError::Ttl(self.ttl));
        }
        // A third of the time for each act; the last holds a whole lease time, and both sides of it.
        let least = (self.ttl * 9 / 2 + Duration::from_millis(1_500)).as_secs_f64().ceil() as u32;
        if self.seconds < least {
            return Err(ArgsError::Seconds { given: self.seconds, least, ttl: self.ttl });
        }
        Ok(())
    }

    /// What is about to be played, in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let store = self.store.as_deref().map_or("a SQLite file of its own", |url| {
            // No password of a store URL belongs on a screen: the scheme says enough.
            url.split_once(':').map_or(url, |(scheme, _)| scheme)
        });
        format!(
            "fanout: {} replicas, ttl {}, {} s, store: {store}\n",
            self.replicas,
            humantime::format_duration(self.ttl),
            self.seconds
        )
    }

    /// The ids of the replicas: r1, r2, r3 …
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        (1..=self.replicas.get()).map(|n| format!("r{n}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn args(line: &str) -> Args {
        Args::try_parse_from(line.split_whitespace()).unwrap()
    }

    #[test]
    fn the_command_line_is_sound_and_shows_only_what_people_use() {
        Args::command().debug_assert();
        let help = Args::command().render_long_help().to_string();
        for hidden in ["--replica <", "--upstream", "--journal"] {
            assert!(!help.contains(hidden), "{hidden} in\n{help}");
        }
    }

    #[test]
    fn a_run_that_could_not_show_what_it_should_is_refused_with_the_number_that_could() {
        assert_eq!(args("fanout").check(), Ok(()));
        assert_eq!(args("fanout --ttl 300ms --seconds 3").check(), Ok(()));
        let error = args("fanout --ttl 2s --seconds 9").check().unwrap_err();
        assert_eq!(error, ArgsError::Seconds { given: 9, least: 11, ttl: Duration::from_secs(2) });
        assert_eq!(args("fanout --replicas 1").check(), Err(ArgsError::Replicas(1)));
        assert!(matches!(args("fanout --ttl 0s").check(), Err(ArgsError::Ttl(_))));
    }

    #[test]
    fn a_replica_is_told_everything_or_nothing() {
        assert!(args("fanout").part.is_none());
        let all = "fanout --store memory: --replica r1 --upstream 127.0.0.1:1 --journal j";
        assert_eq!(args(all).part.unwrap().replica, "r1");
        assert!(Args::try_parse_from("fanout --replica r1".split_whitespace()).is_err());
    }
}
