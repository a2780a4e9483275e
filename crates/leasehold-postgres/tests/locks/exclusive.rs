//! A lock for one transaction.

use crate::support::{LOCKS, WAITING, client, server, until, within};
use leasehold_postgres::{Key, LockError, TransactionLock, exclusive, shared};
use std::{convert::Infallible, time::Duration};
use tokio::sync::oneshot;
use tokio_postgres::Transaction;

async fn bump(tx: &Transaction<'_>) -> Result<i32, tokio_postgres::Error> {
    let rows = tx.query("SELECT n FROM counter", &[]).await?;
    let n: i32 = rows[0].get(0);
    tx.execute("UPDATE counter SET n = $1", &[&(n + 1)]).await?;
    Ok(n + 1)
}

#[tokio::test]
async fn what_is_read_and_written_under_the_lock_is_never_lost() {
    let server = server().await;
    // The worst default there is: each snapshot would be older than the lock.
    server.sql("CREATE TABLE counter AS SELECT 0 AS n");
    server.sql("ALTER ROLE postgres SET default_transaction_isolation = 'repeatable read'");
    let mut workers = Vec::new();
    for _ in 0..6 {
        let mut client = client(&server.url()).await;
        workers.push(tokio::spawn(async move {
            for _ in 0..20 {
                exclusive(&mut client, "counter", async |tx| bump(tx).await).await.unwrap();
            }
        }));
    }
    for worker in workers {
        within(worker).await.unwrap();
    }
    assert_eq!(server.sql("SELECT n FROM counter"), "120");
    assert_eq!(server.sql(LOCKS), "0");
}

/// Holds the lock until told to let go.
async fn holder(url: &str, key: Key) -> oneshot::Sender<()> {
    let mut client = client(url).await;
    let (begun, beginning) = oneshot::channel();
    let (end, ending) = oneshot::channel::<()>();
    tokio::spawn(async move {
        exclusive(&mut client, &key, async |_| {
            begun.send(()).expect("it is waited for");
            let _ = ending.await;
            Ok::<_, Infallible>(())
        })
        .await
        .expect("nobody else holds it");
    });
    within(beginning).await.expect("it begins");
    end
}

#[tokio::test]
async fn a_lock_that_is_held_is_not_waited_for_longer_than_was_asked() {
    let server = server().await;
    let end = holder(&server.url(), "run".into()).await;
    let mut client = client(&server.url()).await;
    client.batch_execute("SET lock_timeout = 1234").await.unwrap();
    let work = async |_: &Transaction<'_>| -> Result<(), Infallible> { panic!("it is locked") };

    let tried = TransactionLock::exclusive("run").try_once().run(&mut client, work).await.unwrap_err();
    assert!(matches!(&tried, LockError::Busy { waited, .. } if waited.is_zero()), "{tried}");
    let waited =
        TransactionLock::shared("run").within(Duration::from_millis(50)).run(&mut client, work).await;
    let waited = waited.unwrap_err().to_string();
    assert!(waited.starts_with("run (advisory key ") && waited.contains("not free within 50ms"), "{waited}");

    // One who waits gets it, and finds the session's own timeout in its work.
    let waiting = tokio::spawn(async move {
        TransactionLock::exclusive("run")
            .run(&mut client, async |tx| {
                let rows = tx.query("SHOW lock_timeout", &[]).await?;
                rows[0].try_get::<_, String>(0)
            })
            .await
    });
    until(&server, WAITING, "1").await;
    end.send(()).unwrap();
    assert_eq!(within(waiting).await.unwrap().unwrap(), "1234ms");
}

#[tokio::test]
async fn names_whose_short_hashes_collide_are_held_together_and_the_applications_own_locks_do_not_matter() {
    // B53
    let server = server().await;
    let mut application = client(&server.url()).await;
    let own = "SELECT pg_advisory_lock(1), pg_advisory_lock(0, 0), pg_advisory_lock(0, 1)";
    application.batch_execute(own).await.unwrap();
    let mut second = client(&server.url()).await;
    for (one, other) in [("plumless", "buckeroo"), ("lease-55891", "lease-149086"), ("x", "x/")] {
        let end = holder(&server.url(), one.into()).await;
        TransactionLock::exclusive(other)
            .try_once()
            .run(&mut second, async |_| Ok::<_, Infallible>(()))
            .await
            .unwrap();
        end.send(()).unwrap();
    }
    // Numbers are the application's own.
    for (key, free) in [(Key::from(1), false), (Key::from((0, 1)), false), (Key::from((1, 0)), true)] {
        let lock = TransactionLock::exclusive(&key).try_once();
        let tried = lock.run(&mut application, async |_| Ok::<_, Infallible>(())).await;
        assert!(tried.is_ok(), "a session does not keep itself out: {key}");
        let tried = lock.run(&mut second, async |_| Ok::<_, Infallible>(())).await;
        assert_eq!(tried.is_ok(), free, "{key}");
    }
}

#[tokio::test]
async fn shared_holders_work_together_and_keep_an_exclusive_one_out() {
    let server = server().await;
    let (mut one, mut two) = (client(&server.url()).await, client(&server.url()).await);
    shared(&mut one, "prices", async |_| {
        shared(&mut two, "prices", async |_| Ok::<_, Infallible>(())).await.unwrap();
        let alone = TransactionLock::exclusive("prices").try_once();
        let tried = alone.run(&mut two, async |_| Ok::<_, Infallible>(())).await;
        assert!(matches!(tried, Err(LockError::Busy { .. })));
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    assert_eq!(server.sql(LOCKS), "0");
}

#[tokio::test]
async fn work_whose_statement_failed_is_never_said_to_be_committed() {
    let server = server().await;
    server.sql("CREATE TABLE t (n int PRIMARY KEY); CREATE TABLE ref (n int REFERENCES t DEFERRABLE INITIALLY DEFERRED)");
    let mut client = client(&server.url()).await;

    let failed = exclusive(&mut client, "t", async |tx| {
        tx.execute("INSERT INTO t VALUES (1)", &[]).await?;
        tx.execute("INSERT INTO t VALUES (1)", &[]).await
    });
    assert!(matches!(failed.await, Err(LockError::Work(_))));
    // A plain COMMIT would answer ROLLBACK to this, and no driver would tell.
    let overlooked = exclusive(&mut client, "t", async |tx| {
        tx.execute("INSERT INTO t VALUES (1)", &[]).await?;
        let _ = tx.execute("INSERT INTO t VALUES (1)", &[]).await;
        Ok::<_, tokio_postgres::Error>(())
    });
    assert!(matches!(overlooked.await, Err(LockError::Aborted)));
    let refused = exclusive(&mut client, "t", async |tx| tx.execute("INSERT INTO ref VALUES (7)", &[]).await);
    let refused = refused.await.unwrap_err();
    assert!(matches!(refused, LockError::NotCommitted(_)), "{refused}");
    assert!(refused.to_string().contains("foreign key"), "{refused}");

    assert_eq!(server.sql("SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM ref)"), "0");
    exclusive(&mut client, "t", async |tx| tx.execute("INSERT INTO t VALUES (1)", &[]).await).await.unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM t"), "1");
    until(&server, "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'", "0")
        .await;
    assert_eq!(server.sql(LOCKS), "0");
}

#[tokio::test]
async fn a_lock_in_a_transaction_of_the_users_own_refuses_a_snapshot_that_is_older() {
    let server = server().await;
    let mut client = client(&server.url()).await;
    let tx = client.transaction().await.unwrap();
    TransactionLock::exclusive("a").lock(&tx).await.unwrap();
    assert_eq!(server.sql(LOCKS), "1");
    tx.commit().await.unwrap();

    let level = tokio_postgres::IsolationLevel::RepeatableRead;
    let tx = client.build_transaction().isolation_level(level).start().await.unwrap();
    let refused = TransactionLock::exclusive("a").lock(&tx).await.unwrap_err();
    assert!(refused.to_string().contains("repeatable read would not see"), "{refused}");
    assert_eq!(server.sql(LOCKS), "0");
}

#[tokio::test]
async fn a_session_that_ends_during_the_work_leaves_no_lock_and_no_write() {
    let server = server().await;
    server.sql("CREATE TABLE t (n int)");
    let mut client = client(&server.url()).await;
    let ended = exclusive(&mut client, "t", async |tx| {
        tx.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
        server.terminate_clients();
        Ok::<_, Infallible>(())
    });
    let ended = ended.await.unwrap_err();
    assert!(matches!(ended, LockError::Unknown(_)), "{ended}");
    until(&server, LOCKS, "0").await;
    assert_eq!(server.sql("SELECT count(*) FROM t"), "0");
}
