//! What is done to the workers, and what is expected of the jobs.

use super::{TABLES, jobs, worker::Said};
use crate::{cast::Cast, database};
use leasehold::BoxError;
use std::{
    collections::BTreeMap,
    io::{Write as _, stdout},
    time::Duration,
};
use tokio_postgres::Client;

/// What to play.
#[derive(Debug)]
pub struct Plan {
    /// The database.
    pub store: String,
    /// How many workers, at least three.
    pub workers: u8,
    /// How many jobs.
    pub jobs: u32,
    /// Of a claim.
    pub ttl: Duration,
    /// One object at the end instead of lines.
    pub json: bool,
}

/// Plays it.
///
/// # Errors
/// If anything differs from what is expected.
pub async fn play(plan: Plan) -> Result<(), BoxError> {
    let client = database::connect(&plan.store).await?;
    client.batch_execute(TABLES).await?;
    client.batch_execute(&jobs()?.columns_sql()).await?;
    let insert = "INSERT INTO job_queue_example.job SELECT FROM generate_series(1, $1::bigint)";
    client.execute(insert, &[&i64::from(plan.jobs)]).await?;

    let mut cast = Cast::new(plan.json);
    let ttl = format!("{}ms", plan.ttl.as_millis());
    for at in 0..plan.workers {
        let name = char::from(b'A' + at).to_string();
        cast.start(&name, &["--worker", &name, "--database", &plan.store, "--claim-ttl", &ttl])?;
    }
    let (killed, paused) = (0, 1);
    cast.tell(&format!("{} workers, {} jobs", plan.workers, plan.jobs));

    cast.process(killed)?.hold().await?;
    cast.process(paused)?.hold().await?;
    let mut in_hand = BTreeMap::new();
    let (left_behind, late) = cast
        .until("two workers with a job in hand", |at, said| {
            if let Said::InHand { job } = said {
                in_hand.insert(at, job);
            }
            Some((*in_hand.get(&killed)?, *in_hand.get(&paused)?))
        })
        .await?;
    cast.kill(killed).await?;
    cast.tell(&format!(
        "A has done the work of job {left_behind}, and is killed before it is written (SIGKILL)"
    ));
    cast.process(paused)?.freeze().await?;
    cast.tell(&format!("B has done the work of job {late}, is about to write it, and is frozen (SIGSTOP)"));
    let mut by = BTreeMap::new();
    let (by, others) = cast
        .until("others who do the two jobs", |at, said| {
            if let Said::Done { job } = said {
                by.insert(job, at);
            }
            Some((*by.get(&late)?, *by.get(&left_behind)?))
        })
        .await?;
    cast.tell(&format!(
        "their claims have expired: {} has done job {left_behind}, {} job {late}",
        cast.name(others),
        cast.name(by)
    ));
    cast.process(paused)?.thaw()?;
    cast.process(paused)?.go().await?;
    let answer = cast.until("the late result's answer", |at, said| match said {
        Said::Refused { job, presented, highest } if at == paused && job == late => {
            Some(Some((presented, highest)))
        }
        Said::Done { job } if at == paused && job == late => Some(None),
        _ => None,
    });
    let Some((presented, highest)) = answer.await? else {
        return Err(format!("the late result of job {late} was accepted").into());
    };
    cast.tell(&format!(
        "B is resumed, and its result under fence {presented} is refused: the job is at {highest}"
    ));

    let mut left = left(&client).await?;
    while left > 0 {
        cast.until("the rest", |_, said| matches!(said, Said::Done { .. }).then_some(())).await?;
        left = self::left(&client).await?;
    }
    cast.end().await?;
    verdict(&plan, &client, (presented, highest)).await
}

async fn left(client: &Client) -> Result<i64, BoxError> {
    let left = "SELECT count(*) FROM job_queue_example.job WHERE done_at IS NULL";
    Ok(client.query_one(left, &[]).await?.get(0))
}

async fn verdict(plan: &Plan, client: &Client, refused: (u64, u64)) -> Result<(), BoxError> {
    let count = "SELECT count(*) FILTER (WHERE results = 0), count(*) FILTER (WHERE results > 1), max(claim_fence) FROM (
      SELECT job.id, job.claim_fence, count(result.job) AS results
      FROM job_queue_example.job LEFT JOIN job_queue_example.result ON result.job = job.id GROUP BY job.id) AS jobs";
    let row = client.query_one(count, &[]).await?;
    let (lost, twice, fence): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    client.batch_execute("DROP SCHEMA job_queue_example CASCADE").await?;
    if lost > 0 || twice > 0 || refused.0 >= refused.1 || fence < 2 {
        return Err(format!(
            "{lost} jobs lost, {twice} done twice, refused {refused:?}, highest fence {fence}"
        )
        .into());
    }
    let text = if plan.json {
        serde_json::json!({
            "ok": true,
            "jobs": plan.jobs,
            "lost": lost,
            "twice": twice,
            "refused": { "presented": refused.0, "highest": refused.1 },
        })
        .to_string()
    } else {
        format!("\n{} jobs: none lost, none done twice; the late result was refused", plan.jobs)
    };
    let _ = writeln!(stdout(), "{text}");
    Ok(())
}
