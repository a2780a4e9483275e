//! One leader reads a feed and fans it out to all replicas, while leaders are killed and frozen.
//!
//! ```text
//! cargo run --release --example fanout
//! ```
//! Three replicas run as processes of their own on one SQLite file. One is elected, reads the feed, and delivers every
//! event to all replicas; each serves it to a WebSocket client. Then the leader is killed with SIGKILL, and the next
//! one is frozen with SIGSTOP past its lease, just as it has a delivery in hand. It ends with status 0 if every client
//! saw every event once and in order and the woken leader was refused by its fence, and with 1 if not. With `--handoffs N`
//! leadership is then handed over N times, while the feed runs on.

use clap::Parser;
use leasehold_examples::clock::Stamp;
use leasehold_examples::fanout::{
    args::Args, chart::Chart, chronicle::Chronicle, outcome::Outcome, replica, scenario, story::Story,
};
use std::{
    io::{IsTerminal, Write, stdout},
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(part) = args.part.clone() {
        return replica::live(args, part).await;
    }
    if let Err(error) = args.check() {
        eprintln!("fanout: {error}");
        return ExitCode::from(2);
    }
    tokio::select! {
        code = run(args) => code,
        _ = tokio::signal::ctrl_c() => ExitCode::from(130),
    }
}

async fn run(args: Args) -> ExitCode {
    let colour = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let json = args.json;
    if !json {
        say(&args.headline());
    }
    let from = Stamp::now();
    let story = Mutex::new(Story::begin(from, colour));
    let chronicle = Chronicle::new(move |entry| {
        let line = story.lock().unwrap_or_else(PoisonError::into_inner).tell(entry);
        if let Some(line) = line.filter(|_| !json) {
            say(&line);
        }
    });
    let played = match tempfile::tempdir() {
        Ok(dir) => scenario::play(args.clone(), dir.path(), chronicle, from).await,
        Err(error) => Err(error.into()),
    };
    let outcome = match played {
        Ok(evidence) => Outcome::of(evidence, &args),
        Err(error) => {
            eprintln!("fanout: the run could not begin: {error}");
            return ExitCode::FAILURE;
        }
    };
    if json {
        // The fields are numbers, text and lists: they always have a JSON form.
        say(&serde_json::to_string(&outcome).unwrap_or_default());
    } else {
        say(&outcome.for_people(Chart::for_stdout(colour)));
    }
    if outcome.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a line. Whoever closed the pipe does not want to read on; the verdict is in the exit status, too.
fn say(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}
