//! Work under a lock that ends before its end.

use crate::support::{LOCKS, WAITING, client, server, until, within};
use leasehold_postgres::{Interrupt, TransactionLock, exclusive};
use leasehold_testkit::{Proxy, faults::Direction};
use std::{convert::Infallible, panic::AssertUnwindSafe};
use tokio_postgres::NoTls;

const RUNNING: &str = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND state = 'active' \
                       AND pid <> pg_backend_pid()";

#[tokio::test]
async fn a_panic_releases_the_lock_takes_the_writes_back_and_leaves_a_client_that_works() {
    let server = server().await;
    server.sql("CREATE TABLE t (n int)");
    let mut client = client(&server.url()).await;
    let panicking = tokio::spawn(async move {
        let work = exclusive(&mut client, "t", async |tx| -> Result<(), Infallible> {
            tx.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
            panic!("in the middle");
        });
        let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(work)).await;
        assert!(caught.is_err());
        client
    });
    let mut client = within(panicking).await.unwrap();
    exclusive(&mut client, "t", async |tx| tx.execute("INSERT INTO t VALUES (2)", &[]).await).await.unwrap();
    assert_eq!(server.sql("SELECT n FROM t"), "2");
    assert_eq!(server.sql(LOCKS), "0");
}

#[tokio::test]
async fn a_dropped_future_is_rolled_back_and_its_client_works_on() {
    let server = server().await;
    server.sql("CREATE TABLE t (n int)");
    let mut client = client(&server.url()).await;
    let (tell, written) = tokio::sync::oneshot::channel();
    {
        let mut work = std::pin::pin!(exclusive(&mut client, "t", async |tx| {
            tx.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
            tell.send(()).unwrap();
            std::future::pending::<Result<(), Infallible>>().await
        }));
        tokio::select! {
            _ = &mut work => panic!("it never ends"),
            done = within(written) => done.unwrap(),
        }
    }
    exclusive(&mut client, "t", async |tx| tx.execute("INSERT INTO t VALUES (2)", &[]).await).await.unwrap();
    assert_eq!(server.sql("SELECT n FROM t"), "2");
    assert_eq!(server.sql(LOCKS), "0");
}

#[tokio::test]
async fn a_statement_whose_caller_has_gone_is_ended_and_the_lock_is_free() {
    let server = server().await;
    let mut client = client(&server.url()).await;
    let lock = TransactionLock::exclusive("t").interrupt(Interrupt::by(NoTls));
    {
        let mut work =
            std::pin::pin!(lock.run(&mut client, async |tx| tx.batch_execute("SELECT pg_sleep(600)").await));
        tokio::select! {
            _ = &mut work => panic!("it sleeps for ten minutes"),
            () = until(&server, RUNNING, "1") => {}
        }
    }
    until(&server, RUNNING, "0").await;
    until(&server, LOCKS, "0").await;
    let one = within(client.query_one("SELECT 1", &[])).await.unwrap();
    assert_eq!(one.get::<_, i32>(0), 1);
}

#[tokio::test]
async fn who_gives_up_waiting_leaves_the_queue() {
    let server = server().await;
    let (mut holder, mut waiter) = (client(&server.url()).await, client(&server.url()).await);
    let waiting = TransactionLock::exclusive("t").interrupt(Interrupt::by(NoTls));
    exclusive(&mut holder, "t", async |_| {
        let mut wait = std::pin::pin!(waiting.run(&mut waiter, async |_| Ok::<_, Infallible>(())));
        tokio::select! {
            _ = &mut wait => panic!("it is locked"),
            () = until(&server, WAITING, "1") => {}
        }
        Ok::<_, Infallible>(())
    })
    .await
    .unwrap();
    until(&server, LOCKS, "0").await;
    within(waiting.run(&mut waiter, async |_| Ok::<_, Infallible>(()))).await.unwrap();
}

#[tokio::test]
async fn a_link_that_breaks_under_the_commit_leaves_an_unknown_outcome_and_no_lock() {
    // I7: neither yes nor no.
    let server = server().await;
    server.sql("CREATE TABLE t (n int)");
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let mut client = client(&server.url_at(proxy.addr())).await;
    let work = exclusive(&mut client, "t", async |tx| {
        tx.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
        proxy.blackhole(Direction::Down);
        Ok::<_, Infallible>(())
    });
    let cut = async {
        // The commit arrives, and its answer does not.
        until(&server, "SELECT count(*) FROM t", "1").await;
        proxy.reset();
    };
    let (done, ()) = within(futures_util::future::join(work, cut)).await;
    let error = done.unwrap_err();
    assert!(matches!(error, leasehold_postgres::LockError::Unknown(_)), "{error}");
    assert!(error.to_string().contains("look before you do it again"), "{error}");
    until(&server, LOCKS, "0").await;
}
