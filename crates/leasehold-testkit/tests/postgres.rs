//! PostgreSQL servers are started, asked, frozen, killed, promoted, and gone with their test.
#![cfg(unix)]

use leasehold_testkit::postgres::{Flavour, PgBouncer, PoolMode, Postgres};
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
        assert_eq!(psql(&pooler.url(), "SELECT 40 + 2").as_deref(), Ok("42"), "{mode}");
        assert_eq!(server.terminate_clients(), 1, "{mode}: what the pooler keeps for the next client");
    }
}

/// What a client sees that is not this kit.
fn psql(address: &str, statements: &str) -> Result<String, String> {
    let mut psql = std::process::Command::new("psql");
    psql.args(["-XAtq", address, "-c", statements]).env("PGCONNECT_TIMEOUT", "5");
    let done = psql.output().expect("psql runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(said(&done.stdout)) } else { Err(said(&done.stderr)) }
}

#[tokio::test]
async fn passwords_certificates_and_rules_are_asked_for() {
    for flavour in Flavour::ALL {
        let made = Postgres::new().flavour(flavour).password("o'clock").tls();
        let server = made.hba("hostssl all nobody 127.0.0.1/32 reject").start().await.unwrap();
        let how = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        assert_eq!(psql(&server.url(), how).as_deref(), Ok("t"), "{flavour:?}");
        assert_eq!(psql(&server.socket_url(), how).as_deref(), Ok("f"), "{flavour:?}");
        let denied = |address: &str| psql(address, how).unwrap_err();
        assert!(denied(&server.url().replace("o'clock", "noon")).contains("password"), "{flavour:?}");
        assert!(
            denied(&server.url().replace("sslcert", "krbsrvname")).contains("certificate"),
            "{flavour:?}"
        );
        let plain = format!("postgres://postgres:o'clock@{}/postgres?sslmode=disable", server.addr());
        assert!(denied(&plain).contains("no encryption"), "{flavour:?}");
        assert!(denied(&server.url().replace("//postgres:", "//nobody:")).contains("rejects"), "{flavour:?}");
    }
}

#[tokio::test]
async fn every_version_is_what_it_says() {
    for flavour in Flavour::ALL {
        let server = Postgres::new().flavour(flavour).start().await.unwrap();
        assert_eq!(
            server.sql("SHOW server_version").split(' ').next(),
            Some(server.version()),
            "{flavour:?}"
        );
    }
    assert!(Postgres::new().flavour(Flavour::Postgres18).start().await.unwrap().version().starts_with("18."));
}
