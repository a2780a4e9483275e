//! What the tests share.

use leasehold_postgres::{Schema, layout_sql};
use leasehold_testkit::postgres::{Postgres, PostgresServer};
use std::{future::Future, time::Duration};
use tokio_postgres::{Client, NoTls};

/// Far above what anything takes: it turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn server() -> PostgresServer {
    Postgres::new().start().await.expect("a server")
}

pub(crate) async fn with_layout() -> PostgresServer {
    let server = server().await;
    server.sql(&layout_sql(&Schema::default()));
    server
}

pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server is up");
    // Its end is the client's to notice.
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// Waits until the server answers with `wanted`.
pub(crate) async fn until(server: &PostgresServer, statement: &str, wanted: &str) {
    within(async {
        while server.sql(statement) != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[track_caller]
pub(crate) fn within<F: Future>(what: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(PATIENCE, what).await {
            Ok(done) => done,
            Err(_) => panic!("it hangs: {caller}"),
        }
    }
}

/// Advisory locks that are held or waited for.
pub(crate) const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
pub(crate) const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
