//! PostgreSQL servers are started, asked, frozen, killed, promoted, and gone with their test.
#![cfg(unix)]

use leasehold_testkit::postgres::{PgBouncer, PoolMode, Postgres};
use std::net::TcpStream;

#[tokio::test]
async fn a_server_keeps_its_port_and_what_was_committed_over_a_crash_and_a_restart() {
    let mut server = Postgres::new().config("max_connections", "20").start().await.unwrap();
    assert_eq!(server.sql("SHOW max_connections; SELECT 1, NULL, 'two'"), "20\n1||two");
    assert!(server.try_sql("SELECT 1/0").unwrap_err().contains("division by zero"));
    server.sql("CREATE TABLE kept AS SELECT 7 AS number");
    let addr = server.addr();
    server.kill().await;
    assert!(server.try_sql("SELECT 1").is_err());
    server.restart().await.unwrap();
    assert_eq!((server.addr(), server.sql("SELECT number FROM kept").as_str()), (addr, "7"));
    server.stop().await;
    server.restart().await.unwrap();
    assert_eq!(server.sql("SELECT number FROM kept"), "7");
    let dir = server.dir().to_owned();
    drop(server);
    assert!(TcpStream::connect(addr).is_err() && !dir.exists());
}

#[tokio::test]
async fn a_frozen_server_answers_nobody_until_it_runs_on() {
    let server = Postgres::new().start().await.unwrap();
    server.pause();
    // The kernel takes the connection; nobody is there to greet it.
    assert!(TcpStream::connect(server.addr()).is_ok());
    assert!(server.try_sql("SELECT 1").is_err());
    server.resume();
    assert_eq!(server.sql("SELECT 1"), "1");
}

#[tokio::test]
async fn a_standby_only_reads_until_it_is_promoted() {
    let primary = Postgres::new().start().await.unwrap();
    primary.sql("CREATE TABLE seen (number int)");
    let standby = Postgres::new().standby_of(&primary).start().await.unwrap();
    primary.sql("INSERT INTO seen VALUES (7)");
    standby.catch_up_with(&primary).await;
    assert_eq!(standby.sql("SELECT number FROM seen"), "7");
    assert!(standby.try_sql("INSERT INTO seen VALUES (8)").unwrap_err().contains("read-only"));
    drop(primary);
    standby.promote();
    standby.sql("INSERT INTO seen VALUES (8)");
}

#[tokio::test]
async fn a_pooler_hands_its_connections_around_a_transaction_or_a_session() {
    let server = Postgres::new().start().await.unwrap();
    for mode in [PoolMode::Session, PoolMode::Transaction, PoolMode::Statement] {
        let pooler =
            PgBouncer::new(mode).config("default_pool_size", "1").in_front_of(&server).await.unwrap();
        let through = |statements| {
            let mut psql = std::process::Command::new("psql");
            psql.args(["-XAtq", &pooler.url(), "-c", statements]).env("PGCONNECT_TIMEOUT", "5");
            let done = psql.output().unwrap();
            String::from_utf8_lossy(&done.stdout).trim().to_owned()
        };
        assert_eq!(through("SELECT 40 + 2"), "42", "{mode}");
        assert_eq!(server.terminate_clients(), 1, "{mode}: what the pooler keeps for the next client");
    }
}
