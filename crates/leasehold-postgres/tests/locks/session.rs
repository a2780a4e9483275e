//! A lock for a session of its own.

use crate::support::{LOCKS, WAITING, server, until, within};
use leasehold_core::{BootClock, Clock};
use leasehold_postgres::{MIN_SILENCE, NotLocked, SessionLock, SessionLost, WantedLock};
use leasehold_testkit::{Proxy, faults::Direction, postgres::Postgres};
use std::time::Duration;
use tokio_postgres::{Config, NoTls};

fn config(url: &str) -> Config {
    url.parse().expect("an address")
}

async fn take(url: &str) -> Result<SessionLock, NotLocked> {
    WantedLock::new("run").try_once().take(&config(url), NoTls).await
}

#[tokio::test]
async fn one_session_holds_it_until_it_lets_go_and_each_holder_has_a_higher_fence() {
    let server = server().await;
    let first = take(&server.url()).await.unwrap();
    let busy = take(&server.url()).await.unwrap_err();
    assert!(busy.to_string().starts_with("run (advisory key"), "{busy}");
    first.prove().await.unwrap();
    first.check().unwrap();

    let short = WantedLock::new("run").within(Duration::from_millis(50));
    let waited = short.take(&config(&server.url()), NoTls).await;
    assert!(matches!(waited, Err(NotLocked::Busy { waited, .. }) if !waited.is_zero()));

    let url = server.url();
    let waiting = tokio::spawn(async move { WantedLock::new("run").take(&config(&url), NoTls).await });
    until(&server, WAITING, "1").await;
    let fence = first.fence();
    first.release().await.unwrap();
    let second = within(waiting).await.unwrap().unwrap();
    assert!(second.fence() > fence);
    drop(second);
    // Dropping it closes its connection.
    until(&server, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'", "1").await;
    assert_eq!(server.sql(LOCKS), "0");
}

#[tokio::test]
async fn fences_grow_over_a_crash_of_the_server() {
    // I2
    let mut server = Postgres::new().fsync().start().await.unwrap();
    let mut highest = None;
    for _ in 0..3 {
        let lock = take(&server.url()).await.unwrap();
        assert!(Some(lock.fence()) > highest, "{lock:?} after {highest:?}");
        highest = Some(lock.fence());
        server.kill().await;
        server.restart().await.unwrap();
        let lost = within(lock.lost()).await;
        assert!(matches!(lost, SessionLost::Ended { .. }), "{lost}");
    }
}

#[tokio::test]
async fn the_servers_end_of_the_session_is_heard_at_once_and_nothing_locks_again() {
    // B17
    let server = server().await;
    let lock = take(&server.url()).await.unwrap();
    server.sql(&format!("SELECT pg_terminate_backend({})", lock.backend()));
    let lost = within(lock.lost()).await;
    assert!(lost.to_string().contains("its connection has ended"), "{lost}");
    assert!(lost.to_string().contains("administrator command"), "{lost}");
    let next = take(&server.url()).await.unwrap();
    assert!(next.fence() > lock.fence());
    assert!(matches!(lock.check(), Err(SessionLost::Ended { .. })));
    assert!(matches!(lock.prove().await, Err(SessionLost::Ended { .. })), "what is lost stays lost");
    assert_eq!(server.sql(LOCKS), "1");
}

#[tokio::test]
async fn a_hardened_server_leaves_the_session_alone_for_it_is_never_in_a_transaction() {
    // B47
    let server = Postgres::new()
        .config("idle_session_timeout", "300ms")
        .config("idle_in_transaction_session_timeout", "300ms")
        .config("statement_timeout", "300ms")
        .start()
        .await
        .unwrap();
    let lock = take(&server.url()).await.unwrap();
    let url = server.url();
    // Waiting for longer than a statement may last is no statement of the application's.
    let waiting = tokio::spawn(async move { WantedLock::new("run").take(&config(&url), NoTls).await });
    until(&server, WAITING, "1").await;
    let state = format!("SELECT state FROM pg_stat_activity WHERE pid = {}", lock.backend());
    let old = format!(
        "SELECT clock_timestamp() - state_change > interval '900ms' FROM pg_stat_activity WHERE pid = {}",
        lock.backend()
    );
    until(&server, &old, "t").await;
    assert_eq!(server.sql(&state), "idle");
    lock.prove().await.unwrap();
    lock.release().await.unwrap();
    within(waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn packets_that_are_swallowed_cost_the_trust_in_the_lock_within_the_silence() {
    // B18: no call hangs, and the holder stops trusting before the server gives it up.
    let server = server().await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let wanted = WantedLock::new("run").silence(MIN_SILENCE);
    let lock = wanted.take(&config(&server.url_at(proxy.addr())), NoTls).await.unwrap();
    proxy.blackhole(Direction::Both);
    let lost = within(lock.lost()).await;
    assert!(matches!(lost, SessionLost::Silent { .. }), "{lost}");
    assert!(BootClock.now() >= lock.trusted_until(), "not before its time either");
    assert!(lock.check().is_err());
    // On the way to the lock, too, each step has its end.
    let url = server.url_at(proxy.addr());
    let refused = within(take(&url)).await.unwrap_err();
    assert!(matches!(refused, NotLocked::TimedOut { .. } | NotLocked::Postgres { .. }), "{refused}");
    proxy.heal();
    drop(lock);
    proxy.reset();
    until(&server, LOCKS, "0").await;
    take(&url).await.unwrap();
}

#[tokio::test]
async fn a_standby_is_refused_for_its_locks_keep_nobody_out() {
    let primary = server().await;
    let standby = Postgres::new().standby_of(&primary).start().await.unwrap();
    let refused = take(&standby.url()).await.unwrap_err();
    assert!(refused.to_string().contains("read-only standby"), "{refused}");
    assert_eq!(standby.sql(LOCKS), "0");
}

#[tokio::test]
async fn a_silence_that_no_system_can_count_is_refused_before_anything_is_sent() {
    for silence in [Duration::ZERO, Duration::from_millis(3_999), Duration::MAX] {
        let wanted = WantedLock::new("run").silence(silence);
        let refused = wanted.take(&config("postgres://nobody@127.0.0.1:1/x"), NoTls).await.unwrap_err();
        assert!(refused.to_string().contains("out of range: 4s to 3600s"), "{refused}");
    }
}

#[tokio::test]
async fn a_dropped_wait_leaves_nobody_in_the_queue() {
    let server = server().await;
    let lock = take(&server.url()).await.unwrap();
    let waiting = WantedLock::new("run");
    let config = config(&server.url());
    {
        let mut wait = std::pin::pin!(waiting.take(&config, NoTls));
        tokio::select! {
            _ = &mut wait => panic!("it is locked"),
            () = until(&server, WAITING, "1") => {}
        }
    }
    until(&server, WAITING, "0").await;
    lock.release().await.unwrap();
    take(&server.url()).await.unwrap();
}

/// Whoever can run statements in the session, by a function that it calls, can unlock it there. The next proof sees it, and so
/// does the release.
#[tokio::test]
async fn a_lock_that_was_unlocked_in_its_own_session_is_lost() {
    let server = server().await;
    server.sql("CREATE SCHEMA early; ALTER ROLE postgres SET search_path = early, pg_catalog");
    let (lock, other) = (take(&server.url()).await.unwrap(), WantedLock::new("other"));
    let other = other.try_once().take(&config(&server.url()), NoTls).await.unwrap();
    lock.prove().await.unwrap();
    server.sql(
        "CREATE FUNCTION early.pg_backend_pid() RETURNS integer LANGUAGE sql VOLATILE AS \
         'SELECT pg_catalog.pg_advisory_unlock_all(); SELECT pg_catalog.pg_backend_pid()'",
    );
    let _ = lock.prove().await;
    let lost = lock.prove().await.unwrap_err();
    assert!(matches!(lost, SessionLost::Unlocked { .. }), "{lost}");
    assert!(lost.to_string().contains("something has unlocked it there"), "{lost}");
    let _ = other.prove().await;
    assert!(matches!(other.release().await, Err(SessionLost::Unlocked { .. })));
    server.sql("DROP FUNCTION early.pg_backend_pid()");
    take(&server.url()).await.expect("it is free, though the session lives");
}
