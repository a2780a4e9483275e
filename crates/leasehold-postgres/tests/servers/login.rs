//! Who comes, by which way, and how the other side is known.

use crate::common::{open, round, server, with};
use leasehold_core::StoreErrorKind;
use leasehold_postgres::{Config, PostgresStore, migrate};
use leasehold_testkit::postgres::Postgres;

#[tokio::test]
async fn a_wrong_password_is_denied_and_shown_nowhere() {
    let server = server(Postgres::new().password("right")).await;
    round(&open(&server.url()).await, "job").await;
    let error = PostgresStore::open(&server.url().replace(":right@", ":canary@")).await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Denied);
    let told = format!("{error} {error:?}");
    assert!(told.contains("28P01") && !told.contains("canary"), "{told}");
    let error = PostgresStore::open(&server.url().replace(":right@", "@")).await.unwrap_err();
    assert!(!matches!(error.kind(), StoreErrorKind::Unreachable), "{error}");
}

#[tokio::test]
async fn a_password_may_come_from_a_file() {
    let server = server(Postgres::new().password("right")).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "right\n").unwrap();
    let bare = server.url().replace(":right@", "@");
    let store = open(&with(&bare, &format!("password_file={}", file.path().display()))).await;
    round(&store, "job").await;
}

#[tokio::test]
async fn a_socket_is_a_way_like_any_other() {
    let server = server(Postgres::new()).await;
    round(&open(&server.socket_url()).await, "job").await;
    // Encryption that is asked for has no meaning there, as with every client of PostgreSQL.
    round(&open(&with(&server.socket_url(), "sslmode=prefer")).await, "job").await;
}

#[tokio::test]
async fn sslmode_checks_as_much_as_it_says() {
    let server = Postgres::new().tls().start().await.unwrap();
    let full = server.url();
    migrate(&Config::parse(&full).unwrap()).await.unwrap();
    round(&open(&full).await, "job").await;
    // By its number the server is not the one that its certificate is for, unless it says so.
    for (mode, host, passes) in [
        ("verify-full", "localhost", true),
        ("verify-ca", "127.0.0.1", true),
        ("require", "127.0.0.1", true),
        ("prefer", "127.0.0.1", true),
        // The server takes no connection that is not encrypted.
        ("disable", "127.0.0.1", false),
    ] {
        let address = full.replace("verify-full", mode).replace("localhost", host);
        let opened = PostgresStore::open(&address).await;
        assert_eq!(opened.is_ok(), passes, "{mode} {host}: {opened:?}");
    }
    // An authority that did not make its certificate: the client's own certificate is none.
    let files = server.certificates();
    let (ca, other) = (files.ca.display().to_string(), files.client_cert.display().to_string());
    for (mode, passes) in [("verify-full", false), ("verify-ca", false)] {
        let address = full
            .replace("verify-full", mode)
            .replace(&format!("sslrootcert={ca}"), &format!("sslrootcert={other}"));
        let opened = PostgresStore::open(&address).await;
        assert_eq!(opened.is_ok(), passes, "{mode} with another authority: {opened:?}");
    }
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_where_it_was_asked_for() {
    let server = server(Postgres::new()).await;
    round(&open(&with(&server.url(), "sslmode=prefer")).await, "job").await;
    for mode in ["require", "verify-ca", "verify-full"] {
        let opened = PostgresStore::open(&with(&server.url(), &format!("sslmode={mode}"))).await;
        let error = opened.unwrap_err();
        assert!(error.to_string().contains("TLS"), "{error}");
    }
}
