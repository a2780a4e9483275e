//! A replica: wants to lead, and refreshes the cache while it does.

use super::{CACHE, LEASE, MARK};
use crate::{clock::Stamp, hold::Hold, process::obey};
use leasehold::{BoxError, Fence, Node, Term};
use leasehold_redis::{Fenced, FencedError};
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};
use std::{
    io::{Write as _, stdout},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

/// How often the leader refreshes.
const PACE: Duration = Duration::from_millis(20);

/// What a replica is told on its command line.
#[derive(Debug, Clone, clap::Args)]
#[group(requires_all = ["replica", "cache", "lease_ttl"])]
pub struct Part {
    /// Its id.
    #[arg(long, hide = true, required = false)]
    pub replica: String,
    /// The server.
    #[arg(long, hide = true, required = false)]
    pub cache: String,
    /// How long its lease lives without renewal.
    #[arg(long, hide = true, required = false, value_parser = humantime::parse_duration)]
    pub lease_ttl: Duration,
}

/// A line that a replica prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: Stamp,
    /// What.
    #[serde(flatten)]
    pub said: Said,
}

/// What a replica says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Said {
    /// It leads.
    Leads {
        /// Under this fence.
        fence: u64,
        /// How the term before ended.
        before: String,
    },
    /// It has looked at its lease, and stands still before it writes.
    InHand,
    /// It wrote.
    Wrote {
        /// Under this fence.
        fence: u64,
    },
    /// Its write was refused.
    Refused {
        /// The fence it presented.
        presented: u64,
        /// The highest that the cache has seen.
        highest: u64,
    },
    /// It could not go on.
    Failed {
        /// Why.
        why: String,
    },
}

fn say(said: Said) {
    let line = serde_json::to_string(&Line { at: Stamp::now(), said }).unwrap_or_default();
    // A parent that is gone hears nothing, and ends us by itself.
    let _ = writeln!(stdout(), "{line}");
}

/// Wants to lead until it is killed.
pub async fn live(part: Part) -> ExitCode {
    match act(part).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(Said::Failed { why: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

async fn act(part: Part) -> Result<(), BoxError> {
    let hold = Arc::new(Hold::default());
    obey(hold.clone());
    let node = Node::builder(leasehold::connect(&part.cache).await?).replica(&*part.replica).start().await?;
    let connection = redis::Client::open(&*part.cache)?.get_multiplexed_async_connection().await?;
    let cache = Fenced::new(connection, MARK);
    let leading = node.election(LEASE).ttl(part.lease_ttl).crash_witness(true).lead(move |term| {
        let (cache, hold) = (cache.clone(), hold.clone());
        async move { lead(term, cache, hold).await }
    });
    let election = leading.await?;
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?.recv().await;
    let _ = election.stop(Duration::from_secs(5)).await;
    let _ = node.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

async fn lead(term: Term, cache: Fenced<MultiplexedConnection>, hold: Arc<Hold>) -> Result<(), BoxError> {
    say(Said::Leads { fence: term.fence().get(), before: term.predecessor().fate().to_string() });
    for version in 1_u64.. {
        // The clock is compared here. Whatever happens between this line and the server is the fence's business.
        let permit = term.check()?;
        hold.pass(|| say(Said::InHand));
        // A task of its own: the write that is in hand is sent, and its answer heard, even if the term ends meanwhile.
        let written = tokio::spawn(refresh(cache.clone(), permit.fence(), version)).await?;
        if let Err(FencedError::Stale(stale)) = written {
            term.outranked(stale);
        }
        tokio::select! {
            () = tokio::time::sleep(PACE) => {}
            _ = term.quiescing() => return Ok(()),
        }
    }
    Ok(())
}

/// One write: the check of the fence and the new value in one step.
async fn refresh(
    cache: Fenced<MultiplexedConnection>,
    fence: Fence,
    version: u64,
) -> Result<(), FencedError> {
    let value = format!("{fence} {version}");
    let written = cache.set(fence, CACHE, value).await;
    match &written {
        Ok(()) => say(Said::Wrote { fence: fence.get() }),
        Err(FencedError::Stale(stale)) => {
            say(Said::Refused { presented: stale.presented.get(), highest: stale.highest.get() });
        }
        Err(error) => say(Said::Failed { why: error.to_string() }),
    }
    written
}
