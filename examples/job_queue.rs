//! Several workers share a queue of jobs in a table. One is killed, one is paused; no job is lost, and none done twice.
//!
//! ```text
//! cargo run --release --example job_queue
//! cargo run --release --example job_queue -- --store postgres://postgres@localhost/postgres
//! ```
//! A worker claims some rows for a while, works on them in no transaction at all, and finishes each in the transaction that
//! writes its result. What a killed worker had claimed is taken over when the claim expires, under the next fence; what a paused
//! one writes late is rolled back.
//!
//! It plays in a schema of its own, `job_queue_example`, which it removes. It ends with status 0 if everything went like this, and
//! with 1 if anything differed.

use clap::Parser;
use leasehold::BoxError;
use leasehold_examples::job_queue::{
    scene,
    worker::{self, Part},
};
use leasehold_testkit::postgres::Postgres;
use std::{process::ExitCode, time::Duration};

/// A queue of jobs in a table: none is lost, and none done twice.
#[derive(Debug, Parser)]
#[command(name = "job_queue", disable_version_flag = true)]
struct Args {
    /// The database, e.g. postgres://postgres@localhost/postgres; without it, a server of its own is started.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How many workers there are, 3 to 20.
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u8).range(3..=20))]
    workers: u8,
    /// How many jobs there are, 100 to 100000.
    #[arg(long, default_value = "1000", value_parser = clap::value_parser!(u32).range(100..=100_000))]
    jobs: u32,
    /// How long a claim lives without renewal, 300ms to 1m.
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    ttl: Duration,
    /// Print one JSON object instead of a story.
    #[arg(long)]
    json: bool,
    /// How this program calls itself for a worker.
    #[command(flatten)]
    part: Option<Part>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(part) = args.part {
        return worker::live(part).await;
    }
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\njob_queue: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), BoxError> {
    if !(Duration::from_millis(300)..=Duration::from_secs(60)).contains(&args.ttl) {
        return Err(format!("--ttl {:?} is out of range: 300ms to 1m", args.ttl).into());
    }
    // A server of its own lives as long as the play does.
    let (store, _server) = match args.store {
        Some(store) => (store, None),
        None => {
            let server = Postgres::new().start().await.map_err(|error| {
                format!("no PostgreSQL server of its own can be started: {error}; install PostgreSQL, or name a database that it \
                         may play in: --store postgres://postgres@localhost/postgres")
            })?;
            (server.url(), Some(server))
        }
    };
    let plan = scene::Plan { store, workers: args.workers, jobs: args.jobs, ttl: args.ttl, json: args.json };
    scene::play(plan).await
}
