//! A nightly run writes one invoice for each customer. The replica that runs is paused; no customer is billed twice.
//!
//! ```text
//! cargo run --release --example invoices
//! cargo run --release --example invoices -- --store postgres://postgres@localhost/postgres
//! ```
//! The leases and the invoices are in one database, and each invoice is one transaction with the check of its fence. The first replica
//! is frozen between its look at the lease and the write, past its lease, and resumed: its late invoice is rolled back, for
//! the other has billed that customer meanwhile.
//!
//! It plays in a schema of its own, `invoices_example`, which it removes; the leases are in the schema `leasehold`, which it installs
//! where it is missing. It ends with status 0 if everything went like this, and with 1 if anything differed.

use clap::Parser;
use leasehold::BoxError;
use leasehold_examples::invoices::{
    replica::{self, Part},
    scene,
};
use leasehold_testkit::postgres::Postgres;
use std::{process::ExitCode, time::Duration};

/// A nightly run by one of two replicas; no customer is billed twice.
#[derive(Debug, Parser)]
#[command(name = "invoices", disable_version_flag = true)]
struct Args {
    /// The database, e.g. postgres://postgres@localhost/postgres; without it, a server of its own is started.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How many customers there are, 100 to 100000.
    #[arg(long, default_value = "1000", value_parser = clap::value_parser!(u32).range(100..=100_000))]
    customers: u32,
    /// How long the lease lives without renewal, 300ms to 1m.
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    ttl: Duration,
    /// Print one JSON object instead of a story.
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
            eprintln!("\ninvoices: {error}");
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
    scene::play(scene::Plan { store, customers: args.customers, ttl: args.ttl, json: args.json }).await
}
