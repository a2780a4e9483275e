//! The contract of a store, over a real server that is seen through connections of two users.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test panics by design, in its helpers too")]

use leasehold_core::{BoxFuture, LeaseName, ReplicaId};
use leasehold_postgres::{Config, PostgresStore, Schema, grants_sql, migrate};
use leasehold_testkit::{
    conformance::{RealTime, Subject},
    postgres::{Flavour, Postgres, PostgresServer},
};
use std::sync::Arc;

mod postgres_18 {
    use super::*;

    leasehold_testkit::conformance!(fresh);

    async fn fresh() -> Subject {
        subject(Flavour::Postgres18).await
    }
}

mod system {
    use super::*;

    leasehold_testkit::conformance!(fresh);

    async fn fresh() -> Subject {
        subject(Flavour::System).await
    }
}

async fn subject(flavour: Flavour) -> Subject {
    let server = Arc::new(Postgres::new().flavour(flavour).start().await.unwrap());
    migrate(&Config::parse(&server.url()).unwrap()).await.unwrap();
    let mut stores = Vec::new();
    // With no more rights than a service needs.
    for user in ["one", "two"] {
        server.sql(&format!("CREATE ROLE {user} LOGIN;{}", grants_sql(&Schema::default(), user).unwrap()));
        let address = format!("postgres://{user}@{}/postgres", server.addr());
        stores.push(Arc::new(PostgresStore::open(&address).await.unwrap()));
    }
    let (other, store) = (stores.pop().unwrap(), stores.pop().unwrap());
    let (damaged, crashed) = (server.clone(), server.clone());
    Subject::new(store, other, RealTime)
        .damaged_by(move |name| damage(damaged.clone(), name))
        .crashed_by(move |_: ReplicaId| crash(crashed.clone()))
        .keeping(server)
}

/// What no program of ours would write.
fn damage(server: Arc<PostgresServer>, name: LeaseName) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let done =
            server.sql(&format!("UPDATE leasehold.lease SET counter = -1 WHERE name = '{name}' RETURNING 1"));
        assert_eq!(done, "1", "it was there");
    })
}

/// What the operating system does when it ends a process: the server finds the connection closed. The store of the first
/// user may not come back with another one, as a process that has ended does not.
fn crash(server: Arc<PostgresServer>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        server.sql("ALTER ROLE one NOLOGIN");
        let witnesses = "FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                         WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND a.usename = 'one'";
        assert_eq!(server.sql(&format!("SELECT count(pg_terminate_backend(pid)) {witnesses}")), "1");
        while server.sql(&format!("SELECT count(*) {witnesses}")) != "0" {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
}
