//! One of three replicas refreshes a cache in Redis that all of them read.
//!
//! ```text
//! cargo run --release --example shared_cache
//! ```
//! Each refresh writes behind the leader's fence, in one step with the check. The leader is killed with SIGKILL; the next one
//! is frozen between its look at the lease and its write, past its lease, and resumed: its late write is refused, and a
//! reader, which looks all the time, never sees an older version after a newer one.
//!
//! It starts a `redis-server` of its own, for the leases and for the cache, unless `--store` names one. It ends with status
//! 0 if everything went like this, and with 1 if anything differed.

use clap::Parser;
use leasehold::BoxError;
use leasehold_examples::shared_cache::{
    replica::{self, Part},
    scene,
    server::OwnServer,
};
use std::{process::ExitCode, time::Duration};

/// A shared cache, refreshed by one replica at a time; a late refresh is refused by its fence.
#[derive(Debug, Parser)]
#[command(name = "shared_cache", disable_version_flag = true)]
struct Args {
    /// The Redis server of the leases and of the cache, e.g. redis://127.0.0.1:6379/0 [default: one of its own]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How many replicas there are, 2 to 20.
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u8).range(2..=20))]
    replicas: u8,
    /// How long a lease lives without renewal, 300ms to 10s.
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    ttl: Duration,
    /// For how long each leader is left in peace, 1 to 600.
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Print one JSON object instead of a timeline.
    #[arg(long)]
    json: bool,
    /// How this program calls itself for a replica.
    #[command(flatten)]
    part: Option<Part>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(part) = args.part {
        return replica::live(part).await;
    }
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nshared_cache: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), BoxError> {
    if !(Duration::from_millis(300)..=Duration::from_secs(10)).contains(&args.ttl) {
        return Err(format!("--ttl {:?} is out of range: 300ms to 10s", args.ttl).into());
    }
    let own = match args.store {
        Some(_) => None,
        None => Some(OwnServer::start().await?),
    };
    let store = args.store.or_else(|| own.as_ref().map(OwnServer::url)).unwrap_or_default();
    let plan = scene::Plan {
        store,
        replicas: args.replicas,
        ttl: args.ttl,
        peace: Duration::from_secs(args.seconds),
        json: args.json,
    };
    scene::play(plan).await
}
