//! A worker: claims jobs, does them, and finishes each in the transaction of its result.

use super::jobs;
use crate::{cast::say, database, hold::Hold, process::obey};
use leasehold::{BoxError, ReplicaId};
use leasehold_postgres::{ClaimError, ClaimTable, RowClaim};
use serde::{Deserialize, Serialize};
use std::{process::ExitCode, sync::Arc, time::Duration};
use tokio::{signal::unix::SignalKind, time::sleep};
use tokio_postgres::Client;

/// How many jobs a worker claims at once.
const BATCH: u32 = 5;
/// How long a job takes.
const WORK: Duration = Duration::from_millis(5);
/// How long a worker waits that found nothing to claim.
const IDLE: Duration = Duration::from_millis(50);

/// What a worker is told on its command line.
#[derive(Debug, Clone, clap::Args)]
#[group(requires_all = ["worker", "database", "claim_ttl"])]
pub struct Part {
    /// Its name.
    #[arg(long, hide = true, required = false)]
    pub worker: String,
    /// The database.
    #[arg(long, hide = true, required = false)]
    pub database: String,
    /// How long a claim lives without renewal.
    #[arg(long, hide = true, required = false, value_parser = humantime::parse_duration)]
    pub claim_ttl: Duration,
}

/// What a worker says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Said {
    /// It has done the work of a job, and stands still before it writes the result.
    InHand {
        /// The job.
        job: i64,
    },
    /// Done: the result is written.
    Done {
        /// The job.
        job: i64,
    },
    /// Its result was refused, and rolled back: somebody else has the job.
    Refused {
        /// The job.
        job: i64,
        /// The fence of its claim.
        presented: u64,
        /// That of the last claim.
        highest: u64,
    },
    /// It could not go on.
    Failed {
        /// Why.
        why: String,
    },
}

/// Works until SIGTERM.
pub async fn live(part: Part) -> ExitCode {
    let hold = Arc::new(Hold::default());
    obey(hold.clone());
    match act(part, &hold).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&Said::Failed { why: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

async fn act(part: Part, hold: &Hold) -> Result<(), BoxError> {
    let mut told_to_end = tokio::signal::unix::signal(SignalKind::terminate())?;
    let mut client = database::connect(&part.database).await?;
    let (jobs, me) = (jobs()?, ReplicaId::new(&*part.worker)?);
    loop {
        let mut claims = jobs.claim(&client, &me, BATCH, part.claim_ttl).await?;
        while let Some(claim) = claims.pop() {
            sleep(WORK).await;
            finish(&mut client, &jobs, &me, &claim, hold).await?;
            // The rest of the batch is kept for as long as it takes. What was lost meanwhile is not begun.
            if claims.iter().any(|claim| claim.remaining() < part.claim_ttl / 2) {
                claims = jobs.renew(&client, claims, part.claim_ttl).await?.kept;
            }
        }
        tokio::select! {
            biased;
            _ = told_to_end.recv() => return Ok(()),
            () = sleep(IDLE) => {}
        }
    }
}

/// One transaction: the result, and the end of the claim.
async fn finish(
    client: &mut Client,
    jobs: &ClaimTable<i64>,
    me: &ReplicaId,
    claim: &RowClaim<i64>,
    hold: &Hold,
) -> Result<(), BoxError> {
    let job = claim.key;
    // Where this process is stopped, if it is: the work is done, and nothing is written.
    hold.pass(|| say(&Said::InHand { job }));
    let tx = client.transaction().await?;
    let (worker, fence) = (me.as_str(), claim.fence.get().cast_signed());
    tx.execute("INSERT INTO job_queue_example.result VALUES ($1, $2, $3)", &[&job, &worker, &fence]).await?;
    match jobs.finish(&tx, claim).await {
        Ok(()) => {
            tx.commit().await?;
            say(&Said::Done { job });
        }
        Err(ClaimError::Stale(stale)) => {
            tx.rollback().await?;
            say(&Said::Refused { job, presented: stale.presented.get(), highest: stale.highest.get() });
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
