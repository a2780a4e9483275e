//! Behind a pooler (G5).

use crate::support::{LOCKS, client, server, until, within};
use leasehold_postgres::{NotLocked, TransactionLock, WantedLock, exclusive};
use leasehold_testkit::postgres::{PgBouncer, PoolMode};
use std::convert::Infallible;
use tokio_postgres::{Config, NoTls};

#[tokio::test]
async fn a_session_lock_refuses_a_pooler_in_transaction_mode_and_leaves_no_lock_there() {
    // B44: with sessions to spare, and with a single one.
    let server = server().await;
    for mode in [PoolMode::Transaction, PoolMode::Statement] {
        for size in ["4", "1"] {
            let pooler = PgBouncer::new(mode).config("default_pool_size", size);
            let pooler = pooler.in_front_of(&server).await.unwrap();
            let config: Config = pooler.url().parse().unwrap();
            // A pool that was in use has sessions to choose from.
            let mut others = Vec::new();
            for _ in 0..4 {
                let client = client(&pooler.url()).await;
                others.push(tokio::spawn(async move { client.batch_execute("SELECT pg_sleep(0.05)").await }));
            }
            for other in others {
                within(other).await.unwrap().unwrap();
            }
            let refused = within(WantedLock::new("run").take(&config, NoTls)).await.unwrap_err();
            assert!(matches!(refused, NotLocked::Pooled { .. }), "{mode}, {size}: {refused}");
            assert!(refused.to_string().contains("pooler in transaction"), "{refused}");
            assert_eq!(server.sql(LOCKS), "0");
        }
    }
}

#[tokio::test]
async fn a_session_lock_works_behind_a_pooler_in_session_mode_and_is_gone_with_its_client() {
    let server = server().await;
    let pooler = PgBouncer::new(PoolMode::Session).in_front_of(&server).await.unwrap();
    let config: Config = pooler.url().parse().unwrap();
    let lock = within(WantedLock::new("run").take(&config, NoTls)).await.unwrap();
    assert_eq!(server.sql(LOCKS), "1");
    drop(lock);
    until(&server, LOCKS, "0").await;
}

#[tokio::test]
async fn an_exclusive_transaction_works_behind_a_pooler_in_transaction_mode() {
    let server = server().await;
    server.sql("CREATE TABLE counter AS SELECT 0 AS n");
    let pooler = PgBouncer::new(PoolMode::Transaction).config("default_pool_size", "3");
    let pooler = pooler.in_front_of(&server).await.unwrap();
    let mut workers = Vec::new();
    for _ in 0..6 {
        let mut client = client(&pooler.url()).await;
        workers.push(tokio::spawn(async move {
            for _ in 0..10 {
                let count = exclusive(&mut client, "counter", async |tx| {
                    tx.batch_execute("DO $$ DECLARE a int; BEGIN SELECT n INTO a FROM counter; UPDATE counter SET n = a + 1; END $$")
                        .await
                });
                count.await.unwrap();
            }
        }));
    }
    for worker in workers {
        within(worker).await.unwrap();
    }
    assert_eq!(server.sql("SELECT n FROM counter"), "60");
    assert_eq!(server.sql(LOCKS), "0");

    let mut client = client(&pooler.url()).await;
    let busy = exclusive(&mut client, "a", async |_| {
        let mut other = crate::support::client(&pooler.url()).await;
        let tried = TransactionLock::exclusive("a").try_once();
        Ok::<_, Infallible>(tried.run(&mut other, async |_| Ok::<_, Infallible>(())).await.is_err())
    });
    assert!(busy.await.unwrap());
}
