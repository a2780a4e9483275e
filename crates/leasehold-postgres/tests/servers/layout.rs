//! The schema: made once by however many, printed for others, and used with no more rights than it takes.

use crate::common::{bid, open, refused, round, server, win};
use leasehold_core::{LeaseStore, StoreErrorKind};
use leasehold_postgres::{Config, PostgresStore, Schema, grants_sql, layout_sql, migrate};
use leasehold_testkit::postgres::Postgres;

#[tokio::test]
async fn many_replicas_that_start_at_once_lay_it_out_once() {
    let server = Postgres::new().start().await.unwrap();
    let config = Config::parse(&server.url()).unwrap();
    let starting = (0..12).map(|_| {
        let config = config.clone();
        tokio::spawn(async move { migrate(&config).await })
    });
    for started in starting.collect::<Vec<_>>() {
        started.await.unwrap().unwrap();
    }
    assert_eq!(server.sql("SELECT count(*) FROM leasehold.layout"), "1");
    round(&open(&server.url()).await, "job").await;
}

#[tokio::test]
async fn a_database_without_the_schema_is_an_error_that_says_what_to_do() {
    let server = Postgres::new().start().await.unwrap();
    let error = PostgresStore::open(&server.url()).await.unwrap_err();
    assert!(matches!(error.kind(), StoreErrorKind::Config(_)), "{error:?}");
    assert!(error.to_string().contains("doctor --migrate"), "{error}");
    let store = open(&format!("{}?migrate=true", server.url())).await;
    round(&store, "job").await;
}

#[tokio::test]
async fn the_printed_text_makes_the_same_store_in_any_schema() {
    let server = Postgres::new().start().await.unwrap();
    let schema = Schema::new("jobs").unwrap();
    server.sql(&layout_sql(&schema));
    let store = open(&format!("{}?schema=jobs", server.url())).await;
    win(&store, "job").await;
    assert_eq!(store.address(), format!("postgres://{}/postgres?schema=jobs", server.addr()));
    // Two schemas share nothing.
    let other = open(&format!("{}?migrate=true", server.url())).await;
    assert_eq!(win(&other, "job").await.claim.fence.get(), 1);
    assert_eq!(other.list("").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_schema_that_an_administrator_made_for_us_is_filled_and_a_foreign_one_is_left_alone() {
    let server = Postgres::new().start().await.unwrap();
    server.sql(
        "CREATE ROLE migrator LOGIN; CREATE SCHEMA leasehold AUTHORIZATION migrator; \
         CREATE SCHEMA theirs; CREATE TABLE theirs.orders (id int)",
    );
    let url = format!("postgres://migrator@{}/postgres", server.addr());
    migrate(&Config::parse(&url).unwrap()).await.unwrap();
    round(&open(&url).await, "job").await;
    let theirs = Config::parse(&format!("{}?schema=theirs", server.url())).unwrap();
    let error = migrate(&theirs).await.unwrap_err();
    assert!(matches!(error.kind(), StoreErrorKind::Foreign { .. }), "{error}");
    assert_eq!(server.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'theirs'::regnamespace"), "1");
}

#[tokio::test]
async fn a_layout_of_a_newer_program_is_refused() {
    let server = server(Postgres::new()).await;
    server.sql("UPDATE leasehold.layout SET version = 99");
    for error in [
        PostgresStore::open(&server.url()).await.unwrap_err(),
        migrate(&Config::parse(&server.url()).unwrap()).await.unwrap_err(),
    ] {
        assert!(matches!(error.kind(), StoreErrorKind::NewerSchema { found: 99, known: 1 }), "{error:?}");
    }
}

/// The whole contract is run by such a user in `conformance.rs`; here is what it may not do.
#[tokio::test]
async fn a_user_of_the_store_can_do_nothing_but_use_it() {
    let server = server(Postgres::new()).await;
    let grants = grants_sql(&Schema::default(), "app").unwrap();
    server.sql("CREATE ROLE app LOGIN; CREATE ROLE stranger LOGIN");
    let url = |user: &str| format!("postgres://{user}@{}/postgres", server.addr());
    for user in ["app", "stranger"] {
        let error = PostgresStore::open(&url(user)).await.unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Denied, "{error}");
    }
    server.sql(&grants);
    let store = open(&url("app")).await;
    round(&store, "job").await;
    for statement in [
        "SELECT * FROM leasehold.lease",
        "UPDATE leasehold.lease SET counter = 1",
        "DELETE FROM leasehold.mark",
        "SELECT leasehold.save(NULL)",
        "DROP FUNCTION leasehold.version()",
        "CREATE TABLE leasehold.mine ()",
    ] {
        let denied = server.try_sql(&format!("SET ROLE app; {statement}"));
        // Saving nothing changes nothing, and saving something is denied at the table.
        assert!(denied.is_err(), "{statement}: {denied:?}");
    }
    server.sql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA leasehold FROM app");
    let kind = refused(store.acquire(&bid("job", "me")).await);
    assert_eq!(kind, StoreErrorKind::Denied);
}
