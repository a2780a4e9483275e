//! What is told to nobody, and that nobody misses it.

use crate::common::{PATIENCE, eventually, lease, let_go, open, server, win};
use leasehold_core::{LeaseState, LeaseStore, Scope, Sighting, Watch};
use leasehold_testkit::postgres::{Postgres, PostgresServer};
use std::future::poll_fn;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_postgres::{AsyncMessage, Client, NoTls};

async fn client(url: &str) -> (Client, JoinHandle<()>) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    (client, tokio::spawn(async move { drop(connection.await) }))
}

async fn vacant(watch: &mut Watch) {
    let seen = async {
        loop {
            match watch.next().await {
                Some(Sighting::State(record)) if record.state == LeaseState::Vacant => return,
                Some(_) => {}
                None => panic!("the watch ended"),
            }
        }
    };
    timeout(PATIENCE, seen).await.expect("the vacancy is seen");
}

/// A client that hears all that is told, and the channels on which it heard something.
async fn overhearing(server: &PostgresServer) -> (Client, mpsc::UnboundedReceiver<String>) {
    let (client, mut connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(news) = message {
                tell.send(news.channel().to_owned()).ok();
            }
        }
    });
    let channel = server.sql("SELECT leasehold.channel('lease', 'job')");
    client.batch_execute(&format!("LISTEN {channel}; LISTEN the_end")).await.unwrap();
    (client, told)
}

/// Commits of those that notify follow one another, for a lock that PostgreSQL takes: a change that nobody hears takes none.
#[tokio::test]
async fn a_change_is_told_only_if_somebody_listens() {
    let server = server(Postgres::new()).await;
    let store = open(&server.url()).await;
    // It does not say that it listens, as those of a store do.
    let (client, mut told) = overhearing(&server).await;
    let mut changes_told = async || {
        let granted = win(&store, "job").await;
        let_go(&store, &granted.claim).await;
        // What is told comes in the order of the commits.
        client.batch_execute("NOTIFY the_end").await.unwrap();
        let mut changes = 0;
        while timeout(PATIENCE, told.recv()).await.expect("it is told").unwrap() != "the_end" {
            changes += 1;
        }
        changes
    };
    assert_eq!(changes_told().await, 0, "nobody listens");
    let watching = open(&server.url()).await;
    for scope in [Scope::Names(vec![lease("job")]), Scope::All] {
        let watch = watching.watch(scope).await.unwrap();
        assert_eq!(changes_told().await, 2, "somebody listens");
        drop(watch);
    }
    drop(watching);
    eventually("the locks of whoever listened go with it", async || {
        server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"
    })
    .await;
    assert_eq!(changes_told().await, 0, "nobody listens any more");
}

/// A candidate that registers while a change that found nobody commits waits for that commit, and then reads it.
#[tokio::test]
async fn whoever_begins_to_listen_during_a_silent_change_reads_it() {
    let server = server(Postgres::new()).await;
    let store = open(&server.url()).await;
    for (name, by_name) in [("one", true), ("two", false)] {
        win(&store, name).await;
        let (client, _driver) = client(&server.url()).await;
        client
            .batch_execute(&format!("BEGIN; SELECT leasehold.force('{name}', 'me', 'a test')"))
            .await
            .unwrap();
        let other = open(&server.url()).await;
        let scope = if by_name { Scope::Names(vec![lease(name)]) } else { Scope::All };
        let watching = tokio::spawn(async move {
            let watch = other.watch(scope).await;
            (other, watch)
        });
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        let waiting = async {
            while server.sql(waits) != "1" {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await.expect("the listener waits for the change");
        client.batch_execute("COMMIT").await.unwrap();
        let (_other, watch) = timeout(PATIENCE, watching).await.expect("it listens").unwrap();
        vacant(&mut watch.unwrap()).await;
    }
}
