//! A holder sleeps through its lease, wakes, and writes: what a fence is for.
//!
//! ```text
//! cargo run --release --example paused_holder
//! ```
//! A takes a lease of 300 ms and is paused for 400 ms, just as it is about to write. B takes the lease under token 2 and
//! writes. A wakes, and its write with token 1 is refused against the current 2; A's release afterwards leaves B's lease
//! alone. Once with SIGSTOP, and once without any signal: A blocks the runtime that it runs on.
//!
//! It ends with status 0 if everything went exactly like this, and with 1 if anything differed.

use clap::Parser;
use leasehold::{BoxError, Node};
use leasehold_examples::{
    paused_holder::{
        holder::{self, Part},
        scene::{self, Differs, Pause},
    },
    store,
};
use std::{
    io::{Write, stdout},
    process::ExitCode,
};

/// A holder is paused past its lease; its late write is refused by its fence.
#[derive(Debug, Parser)]
#[command(name = "paused_holder", disable_version_flag = true)]
struct Args {
    /// Where leases are kept, e.g. sqlite:/tmp/leases.db [default: a SQLite file in a temporary directory]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How this program calls itself for A and B.
    #[command(flatten)]
    part: Option<Part>,
}

/// A machine may be too busy for a lease of 300 ms before the scene has even begun.
const ATTEMPTS: usize = 5;

// One thread: a worker that blocks it then really blocks its own renewals.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(part) = args.part {
        return holder::live(args.store.as_deref().unwrap_or_default(), part).await;
    }
    match run(args.store).await {
        Ok(()) => {
            say("\nboth as it should be: the late write was refused, and the late release hurt nobody");
            ExitCode::SUCCESS
        }
        Err(differs) => {
            eprintln!("\npaused_holder: {differs}");
            ExitCode::FAILURE
        }
    }
}

async fn run(store: Option<String>) -> Result<(), Differs> {
    let dir = tempfile::tempdir().map_err(BoxError::from)?;
    let store = store.unwrap_or_else(|| format!("sqlite:{}", dir.path().join("leases.db").display()));
    let shared = store::open(&store).await.map_err(BoxError::from)?;
    let node = Node::builder(shared).start().await.map_err(BoxError::from)?;
    let scenes = [
        (Pause::Signal, "A is stopped from outside (SIGSTOP)"),
        (Pause::OwnRuntime, "without a signal: A blocks its own runtime"),
    ];
    for (pause, title) in scenes {
        say(&format!("\n{title}\n"));
        let mut attempt = 1;
        loop {
            match scene::play(&node, &store, pause).await {
                Err(Differs::TooBusy) if attempt < ATTEMPTS => {
                    say(&format!("\n  {}; once more\n", Differs::TooBusy));
                    attempt += 1;
                }
                played => break played?,
            }
        }
    }
    Ok(())
}

/// Prints a line. Whoever closed the pipe does not want to read on; the verdict is in the exit status, too.
fn say(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}
