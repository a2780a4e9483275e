//! What servers do to their clients.

use crate::common::{PATIENCE, bid, eventually, lay_out, open, refused, renew, round, server, win, with};
use leasehold_core::{Acquire, LeaseStore, Renew, Scope, Sighting, StoreErrorKind};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::{conformance::lease, postgres::Postgres};
use std::time::Duration;
use tokio::{net::TcpListener, time::timeout};

/// B19: a port that accepts and says nothing, and one where nobody is.
#[tokio::test]
async fn a_server_that_says_nothing_is_no_server() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        closed.local_addr().unwrap()
    };
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for address in [silent.local_addr().unwrap(), nobody] {
        let url = format!("postgres://u@{address}/d?connect_timeout=200ms");
        let error = timeout(PATIENCE, PostgresStore::open(&url)).await.expect("an end").unwrap_err();
        assert!(matches!(error.kind(), StoreErrorKind::Unreachable | StoreErrorKind::TimedOut(_)), "{error}");
    }
    eventually("no task is left", async || tasks() <= before).await;
}

/// B20: an operator, or a firewall, ends what is idle.
#[tokio::test]
async fn connections_that_are_ended_cost_no_renewal() {
    let server = server(Postgres::new()).await;
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    for _ in 0..5 {
        assert!(server.terminate_clients() > 0);
        let answer = renew(&store, &granted.claim).await;
        assert!(matches!(answer, Renew::Renewed { .. }), "{answer:?}");
    }
}

#[tokio::test]
async fn idle_sessions_that_the_server_ends_cost_neither_a_renewal_nor_news() {
    let server = server(Postgres::new().config("idle_session_timeout", "200ms")).await;
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    let mut watch = other.watch(Scope::All).await.unwrap();
    for n in 0..3 {
        let granted = win(&store, &format!("job {n}")).await;
        eventually("it is seen", async || {
            matches!(watch.next().await, Some(Sighting::State(record)) if record.name == granted.claim.name)
        })
        .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
    }
    let codes: Vec<_> = store.diagnose().await.unwrap().into_iter().map(|finding| finding.code).collect();
    assert!(codes.contains(&"idle-session-timeout"), "{codes:?}");
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again_with_its_leases() {
    let mut server = server(Postgres::new()).await;
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    server.kill().await;
    match store.acquire(&bid("other", "me")).await {
        Acquire::Unknown(error) | Acquire::Refused(error) => {
            assert_eq!(*error.kind(), StoreErrorKind::Unreachable, "{error}");
        }
        other => panic!("there is no server: {other:?}"),
    }
    server.restart().await.unwrap();
    eventually("it is renewed", async || {
        matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. })
    })
    .await;
}

#[tokio::test]
async fn a_standby_is_refused_and_of_several_hosts_the_primary_is_found() {
    let mut primary = server(Postgres::new()).await;
    let standby = Postgres::new().standby_of(&primary).start().await.unwrap();
    standby.catch_up_with(&primary).await;
    let error = PostgresStore::open(&standby.url()).await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::ReadOnly, "{error}");
    let both = format!("postgres://postgres@{},{}/postgres", standby.addr(), primary.addr());
    let store = open(&both).await;
    let granted = win(&store, "job").await;
    standby.catch_up_with(&primary).await;
    primary.kill().await;
    standby.promote();
    eventually("it is renewed at the new primary", async || {
        matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. })
    })
    .await;
}

/// A primary that was demoted, or set to read only, says so; nothing was done.
#[tokio::test]
async fn a_server_that_takes_no_writes_any_more_refuses_clearly() {
    let server = server(Postgres::new()).await;
    let store = open(&server.url()).await;
    let granted = win(&store, "job").await;
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on");
    server.terminate_clients();
    eventually("it is refused", async || match store.acquire(&bid("other", "me")).await {
        Acquire::Refused(error) => {
            assert_eq!(*error.kind(), StoreErrorKind::ReadOnly, "{error}");
            true
        }
        // It was sent on a connection that was just being ended.
        Acquire::Unknown(error) => {
            assert_eq!(*error.kind(), StoreErrorKind::ReadOnly, "{error}");
            false
        }
        other => panic!("{other:?}"),
    })
    .await;
    server.sql("BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT");
    eventually("it is renewed", async || {
        matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. })
    })
    .await;
}

#[tokio::test]
async fn too_many_connections_are_told_with_what_to_do() {
    let server = server(Postgres::new().config("max_connections", "8")).await;
    server.sql("CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA leasehold TO app; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA leasehold TO app");
    let url = format!("postgres://app@{}/postgres?connections=1", server.addr());
    let mut stores = Vec::new();
    let error = loop {
        match PostgresStore::open(&url).await {
            Ok(store) => stores.push(store),
            Err(error) => break error,
        }
        assert!(stores.len() < 8);
    };
    assert_eq!(*error.kind(), StoreErrorKind::Unreachable);
    assert!(error.to_string().contains("max_connections"), "{error}");
    // Those who are in go on; and the doctor among them sees it coming.
    round(&stores[0], "job").await;
    let codes: Vec<_> = stores[0].diagnose().await.unwrap().into_iter().map(|finding| finding.code).collect();
    assert!(codes.contains(&"connections-nearly-full"), "{codes:?}");
}

/// Somebody holds the row in a transaction of his own: the server gives up before anybody's deadline, and nothing is left
/// in a queue.
#[tokio::test]
async fn a_row_that_somebody_locked_refuses_within_a_second_and_harms_no_other_lease() {
    let server = server(Postgres::new()).await;
    let store = open(&with(&server.url(), "connections=1")).await;
    let granted = win(&store, "job").await;
    let other = win(&store, "other").await;
    let (client, connection) =
        server.url().parse::<tokio_postgres::Config>().unwrap().connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT 1 FROM leasehold.lease WHERE name = 'job' FOR UPDATE").await.unwrap();
    match renew(&store, &granted.claim).await {
        Renew::Refused(error) => assert!(matches!(error.kind(), StoreErrorKind::Locked(_)), "{error}"),
        other => panic!("the row is locked: {other:?}"),
    }
    assert!(matches!(renew(&store, &other.claim).await, Renew::Renewed { .. }));
    // Whoever only meets a living claim waits for nobody.
    let held = timeout(Duration::from_millis(500), store.acquire(&bid("job", "another"))).await;
    assert!(matches!(held, Ok(Acquire::Held(_))), "{held:?}");
    client.batch_execute("COMMIT").await.unwrap();
    assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
}

/// Whatever isolation a database is set to: what the server undoes for the sake of another transaction is asked again.
#[tokio::test]
async fn at_every_isolation_level_one_of_many_wins_and_nobody_is_refused() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let server = server(Postgres::new().config("default_transaction_isolation", level)).await;
        let store = open(&with(&server.url(), "connections=8")).await;
        for round in 0..5 {
            let bids: Vec<_> = (0..8).map(|n| bid(&format!("job {round}"), &format!("r{n}"))).collect();
            let answers = futures_util::future::join_all(bids.iter().map(|bid| store.acquire(bid))).await;
            let won = answers.iter().filter(|answer| matches!(answer, Acquire::Granted(_))).count();
            let held = answers.iter().filter(|answer| matches!(answer, Acquire::Held(_))).count();
            assert_eq!((won, held), (1, 7), "{level}: {answers:?}");
        }
    }
}

#[tokio::test]
async fn batches_that_cross_do_not_wait_for_each_other_for_ever() {
    let server = server(Postgres::new()).await;
    let store = open(&with(&server.url(), "connections=8")).await;
    let mut renewals = Vec::new();
    for n in 0..40 {
        let claim = win(&store, &format!("job {n}")).await.claim;
        renewals.push(leasehold_core::Renewal { claim, ttl: crate::common::TTL });
    }
    let mut reversed = renewals.clone();
    reversed.reverse();
    for _ in 0..20 {
        let batches = [&renewals, &reversed, &renewals, &reversed].map(|batch| store.renew(batch));
        for answers in futures_util::future::join_all(batches).await {
            assert!(answers.iter().all(|answer| matches!(answer, Renew::Renewed { .. })), "{answers:?}");
        }
    }
}

/// A schema that is dropped under a running store, and laid out anew.
#[tokio::test]
async fn a_store_that_is_removed_says_so_and_lives_on_when_it_is_there_again() {
    let server = server(Postgres::new()).await;
    let store = open(&server.url()).await;
    win(&store, "job").await;
    server.sql("DROP SCHEMA leasehold CASCADE");
    let kind = refused(store.acquire(&bid("job", "me")).await);
    assert!(matches!(&kind, StoreErrorKind::Config(what) if what.contains("doctor --migrate")), "{kind:?}");
    lay_out(&server).await;
    round(&store, "job").await;
    assert!(store.inspect(&lease("job")).await.unwrap().counter.is_some());
}
