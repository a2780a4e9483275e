//! Claims on rows of the user's own table.

use crate::support::{client, server, within};
use leasehold_core::{Fence, ReplicaId};
use leasehold_postgres::{ClaimError, ClaimTable, Identifier, RowClaim, TableName};
use leasehold_testkit::postgres::PostgresServer;
use std::{collections::BTreeSet, time::Duration};
use tokio_postgres::Client;

const TTL: Duration = Duration::from_secs(60);

fn jobs() -> ClaimTable<i64> {
    ClaimTable::new(TableName::new("job").expect("a name"), Identifier::new("id").expect("a name"))
        .ready("done_at IS NULL")
        .order("id")
        .done("done_at = clock_timestamp()")
}

fn me(name: &str) -> ReplicaId {
    ReplicaId::new(name).expect("a name")
}

async fn with_jobs(count: u32) -> (PostgresServer, Client) {
    let server = server().await;
    server.sql("CREATE TABLE job (id bigserial PRIMARY KEY, done_at timestamptz, result text)");
    server.sql(&jobs().columns_sql());
    server.sql(&format!("INSERT INTO job SELECT FROM generate_series(1, {count})"));
    let client = client(&server.url()).await;
    (server, client)
}

/// As if the claims had been made long ago.
fn expire(server: &PostgresServer) {
    server.sql("UPDATE job SET claimed_until = clock_timestamp() - interval '1 second' WHERE claimed_until IS NOT NULL");
}

#[tokio::test]
async fn a_claimed_row_is_nobody_elses_until_it_is_given_back_or_finished() {
    let (server, mut client) = with_jobs(3).await;
    let jobs = jobs();
    let a = jobs.claim(&client, &me("a"), 2, TTL).await.unwrap();
    assert_eq!(a.iter().map(|claim| claim.key).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
    assert!(a.iter().all(|claim| claim.fence == Fence::FIRST && !claim.reclaimed));
    assert!(a[0].remaining() > TTL / 2 && a[0].remaining() < TTL);
    let b = jobs.claim(&client, &me("b"), 9, TTL).await.unwrap();
    assert_eq!(b.len(), 1);
    assert_eq!(server.sql("SELECT string_agg(claimed_by, ' ' ORDER BY id) FROM job"), "a a b");

    let tx = client.transaction().await.unwrap();
    jobs.finish(&tx, &b[0]).await.unwrap();
    tx.commit().await.unwrap();
    let twice = jobs.finish(&client, &b[0]).await.unwrap_err();
    assert!(matches!(twice, ClaimError::NotClaimed), "{twice}");
    assert_eq!(jobs.give_back(&client, &a).await.unwrap(), 2);
    assert_eq!(jobs.give_back(&client, &a).await.unwrap(), 0);
    let b = jobs.claim(&client, &me("b"), 9, TTL).await.unwrap();
    assert!(b.len() == 2 && b.iter().all(|claim| claim.fence.get() == 2 && !claim.reclaimed), "{b:?}");
}

#[tokio::test]
async fn an_expired_claim_is_taken_over_under_the_next_fence_and_the_late_result_is_rolled_back() {
    let (server, mut client) = with_jobs(1).await;
    let jobs = jobs();
    let late = jobs.claim(&client, &me("late"), 1, TTL).await.unwrap().remove(0);
    expire(&server);
    let next = jobs.claim(&client, &me("next"), 1, TTL).await.unwrap().remove(0);
    assert!(next.reclaimed && next.fence > late.fence);

    let tx = client.transaction().await.unwrap();
    tx.execute("UPDATE job SET result = 'late'", &[]).await.unwrap();
    let refused = jobs.finish(&tx, &late).await.unwrap_err();
    assert!(matches!(refused, ClaimError::Stale(stale) if stale.highest == next.fence), "{refused}");
    tx.rollback().await.unwrap();
    let renewed = jobs.renew(&client, vec![late.clone(), next.clone()], TTL).await.unwrap();
    assert_eq!((renewed.kept.len(), renewed.lost), (1, vec![late.clone()]));
    assert_eq!(jobs.give_back(&client, &[late]).await.unwrap(), 0, "it hurts nobody");
    jobs.finish(&client, &next).await.unwrap();
    assert_eq!(server.sql("SELECT done_at IS NOT NULL AND result IS NULL FROM job"), "t");
}

#[tokio::test]
async fn an_expired_claim_that_nobody_took_is_renewed_and_finished() {
    let (server, client) = with_jobs(2).await;
    let jobs = jobs();
    let claims = jobs.claim(&client, &me("a"), 2, TTL).await.unwrap();
    expire(&server);
    let renewed = jobs.renew(&client, claims, TTL).await.unwrap();
    assert_eq!((renewed.kept.len(), renewed.lost.len()), (2, 0));
    assert!(jobs.claim(&client, &me("b"), 2, TTL).await.unwrap().is_empty());
    expire(&server);
    jobs.finish(&client, &renewed.kept[0]).await.unwrap();
    // A shorter ttl does not take back what was given.
    let kept = jobs.renew(&client, renewed.kept[1..].to_vec(), TTL).await.unwrap().kept;
    let until = server.sql("SELECT claimed_until FROM job WHERE claimed_until IS NOT NULL");
    jobs.renew(&client, kept, Duration::from_millis(1)).await.unwrap();
    assert_eq!(server.sql("SELECT claimed_until FROM job WHERE claimed_until IS NOT NULL"), until);
}

#[tokio::test]
async fn workers_that_claim_at_the_same_time_get_different_rows_and_wait_for_nobody() {
    let (server, client) = with_jobs(400).await;
    // One who holds rows for long, in a transaction, holds nobody up.
    client.batch_execute("BEGIN; SELECT FROM job WHERE id <= 20 FOR UPDATE").await.unwrap();
    let mut workers = Vec::new();
    for worker in 0..8 {
        let client = crate::support::client(&server.url()).await;
        workers.push(tokio::spawn(async move {
            let mut mine: Vec<RowClaim<i64>> = Vec::new();
            loop {
                let claims = jobs().claim(&client, &me(&format!("w{worker}")), 7, TTL).await.unwrap();
                assert!(claims.len() <= 7);
                if claims.is_empty() {
                    return mine;
                }
                mine.extend(claims);
            }
        }));
    }
    let mut all = Vec::new();
    for worker in workers {
        all.extend(within(worker).await.unwrap().into_iter().map(|claim| claim.key));
    }
    let different: BTreeSet<_> = all.iter().copied().collect();
    assert_eq!((all.len(), different), (380, (21..=400).collect()));
}

#[tokio::test]
async fn rows_without_an_end_of_their_own_are_deleted_when_they_are_done_and_any_key_will_do() {
    let server = server().await;
    server.sql("CREATE TABLE \"Mail\" (\"To\" text PRIMARY KEY)");
    let mails = ClaimTable::<String>::new(TableName::new("Mail").unwrap(), Identifier::new("To").unwrap());
    server.sql(&mails.columns_sql());
    server.sql("INSERT INTO \"Mail\" VALUES ('o''brien'), ('x')");
    let client = client(&server.url()).await;
    let claims = mails.claim(&client, &me("a"), 2, TTL).await.unwrap();
    let renewed = mails.renew(&client, claims, TTL).await.unwrap();
    let obrien = renewed.kept.iter().find(|claim| claim.key == "o'brien").unwrap();
    mails.finish(&client, obrien).await.unwrap();
    assert!(matches!(mails.finish(&client, obrien).await, Err(ClaimError::NoRow)));
    assert_eq!(server.sql("SELECT \"To\" FROM \"Mail\""), "x");
}

#[tokio::test]
async fn absurd_times_are_refused_before_anything_is_sent() {
    let (_server, client) = with_jobs(1).await;
    for ttl in [Duration::ZERO, Duration::from_nanos(999_999), Duration::MAX] {
        let refused = jobs().claim(&client, &me("a"), 1, ttl).await.unwrap_err();
        assert!(refused.to_string().contains("1 ms to 86400s"), "{refused}");
    }
    assert!(jobs().claim(&client, &me("a"), 0, TTL).await.unwrap().is_empty());
}
