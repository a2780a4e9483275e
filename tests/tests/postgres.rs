//! What becomes of leaders when their PostgreSQL server, or what lies in front of it, fails (cases B17, B33, B36, B44, B100;
//! I1, I2, I10).

use leasehold_testkit::postgres::{Flavour, PgBouncer, PoolMode, Postgres};
use leasehold_tests::{Backend, Ledger, Site, What};
use std::time::Duration;
use tokio::runtime::Runtime;

const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(30);
const REPLICA: &str = env!("CARGO_BIN_EXE_replica");

fn site() -> Site {
    Site::new(Backend::Postgres, REPLICA)
}

fn is_renewal(what: &What) -> bool {
    matches!(what, What::Renewed { .. })
}

/// B33, the short outage: renewals go on, under the same fence.
#[test]
fn a_restart_within_the_ttl_costs_no_term() {
    let site = site();
    let mut a = site.replica("a").ttl(Duration::from_secs(10)).elect();
    let first = a.acquired().fence;
    site.restart_server();
    let back = a.count(is_renewal);
    a.wait("a renewal after the restart", |said| is_renewal(&said.what));
    assert!(a.count(is_renewal) > back && a.leads());
    assert_eq!(site.look().fence(), first);
}

/// B33, the long outage: lost by the own clock, and led again under a higher fence, renewals and all.
#[test]
fn an_outage_beyond_the_ttl_ends_the_term_and_the_next_one_is_above_it() {
    let site = site();
    let ledger = Ledger::open();
    let mut a = site.replica("a").ttl(SHORT).ledger(&ledger).writing_every(Duration::from_millis(20)).elect();
    let first = a.acquired().fence;
    site.on_postgres(|server| server.pause());
    a.lost(first);
    site.on_postgres(|server| server.resume());
    let second = a.acquired().fence;
    assert!(second > first);
    for _ in 0..3 {
        a.wait("it renews as before", |said| is_renewal(&said.what));
    }
    ledger.wait("and writes", |entry| entry.fence >= second);
    assert!(ledger.lines().is_sorted_by_key(|(fence, _)| *fence), "I1");
}

/// B17: an operator ends all connections, again and again.
#[test]
fn connections_that_are_ended_cost_no_term() {
    let site = site();
    let mut a = site.replica("a").ttl(Duration::from_secs(3)).elect();
    let first = a.acquired().fence;
    for _ in 0..5 {
        assert!(site.on_postgres(|server| server.terminate_clients()) > 0);
        a.wait("a renewal", |said| is_renewal(&said.what));
    }
    assert_eq!(site.look().fence(), first);
}

/// The server ends sessions that are idle, which between two renewals they are.
#[test]
fn a_server_that_ends_idle_sessions_costs_no_term() {
    let site = Site::on_server(Postgres::new().config("idle_session_timeout", "400ms"), REPLICA);
    // Renewed every 800 ms.
    let mut a = site.replica("a").ttl(Duration::from_millis(2_400)).elect();
    let first = a.acquired().fence;
    for _ in 0..5 {
        a.wait("a renewal", |said| is_renewal(&said.what));
    }
    let ended = "SELECT sessions_fatal > 0 FROM pg_stat_database WHERE datname = 'postgres'";
    assert_eq!(
        site.on_postgres(|server| server.sql(ended)),
        "t",
        "sessions were ended, or this has shown nothing"
    );
    assert_eq!(site.look().fence(), first);
}

/// B100: whoever waits has lost its subscription when the lease becomes free. With a ttl that no test waits for.
#[test]
fn a_waiter_that_missed_the_news_reads_it() {
    let site = site();
    let mut a = site.replica("a").ttl(LONG).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(LONG).elect();
    b.campaigning();
    site.on_postgres(|server| server.terminate_clients());
    a.terminate();
    let second = b.acquired();
    assert!(second.follows_in_order(first), "{second:?}");
}

/// B36 and I2: the rows are gone; the holder learns it, and what everybody remembers repairs the counter.
#[test]
fn lost_rows_end_the_term_and_no_fence_is_issued_twice() {
    let site = site();
    let mut a = site.replica("a").ttl(SHORT).elect();
    let mut fences = vec![a.acquired().fence];
    for _ in 0..3 {
        site.on_postgres(|server| server.sql("TRUNCATE leasehold.lease"));
        a.lost(fences[fences.len() - 1]);
        fences.push(a.acquired().fence);
    }
    assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "{fences:?}");
}

/// The witness of a leader that works is cut off: it has it again before anybody notices, or another leads above it.
#[test]
fn a_leader_whose_witness_is_cut_off_leads_on_or_is_followed_under_a_higher_fence() {
    let site = site();
    let ledger = Ledger::open();
    let elect = |id: &str| {
        let replica = site.replica(id).ttl(SHORT).crash_witness().ledger(&ledger);
        replica.writing_every(Duration::from_millis(10)).elect()
    };
    let mut a = elect("a");
    let first = a.acquired().fence;
    let mut b = elect("b");
    b.campaigning();
    for round in 0..5 {
        site.on_postgres(|server| server.terminate_clients());
        let written = ledger.journal().len();
        ledger.wait_behind(written, &format!("work goes on, round {round}"), |entry| entry.fence >= first);
    }
    assert!(ledger.lines().is_sorted_by_key(|(fence, _)| *fence), "I1");
}

/// The primary is gone for good, and its standby takes its place: whoever leads there leads above whoever led before.
#[test]
fn a_promoted_standby_has_the_leases_and_goes_on_above_them() {
    let runtime = Runtime::new().unwrap();
    let (mut primary, standby) = runtime.block_on(async {
        let primary = Postgres::new().start().await.unwrap();
        let standby = Postgres::new().standby_of(&primary).start().await.unwrap();
        (primary, standby)
    });
    let hosts = format!("{},{}", primary.addr(), standby.addr());
    let address = format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write&migrate=yes");
    let site = Site::at(address, REPLICA);
    let ledger = Ledger::open();
    let elect = |id: &str| {
        site.replica(id).ttl(SHORT).ledger(&ledger).writing_every(Duration::from_millis(20)).elect()
    };
    let mut a = elect("a");
    let first = a.acquired().fence;
    let mut b = elect("b");
    b.campaigning();
    runtime.block_on(async {
        standby.catch_up_with(&primary).await;
        primary.kill().await;
    });
    // Nobody takes writes now.
    a.lost(first);
    standby.promote();
    ledger.wait("somebody writes above", |entry| entry.fence > first);
    assert!(ledger.lines().is_sorted_by_key(|(fence, _)| *fence), "I1");
    assert!(site.look().fence() > first, "and the promoted server has it");
}

/// B44: lease rows need no session, so that a pooler that lends sessions by the transaction does them no harm.
#[test]
fn behind_a_pooler_that_lends_sessions_by_the_transaction_leases_are_held_and_passed_on() {
    let runtime = Runtime::new().unwrap();
    let (server, pooler) = runtime.block_on(async {
        let server = Postgres::new().start().await.unwrap();
        let pooler = PgBouncer::new(PoolMode::Transaction).config("default_pool_size", "2");
        let pooler = pooler.in_front_of(&server).await.unwrap();
        (server, pooler)
    });
    // Where the layout is made is no pooler's business.
    runtime.block_on(leasehold::connect(&format!("{}?migrate=yes", server.url()))).unwrap();
    let site = Site::at(pooler.url(), REPLICA);
    let mut a = site.replica("a").ttl(SHORT).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(SHORT).elect();
    b.campaigning();
    for _ in 0..5 {
        a.wait("a renewal", |said| is_renewal(&said.what));
    }
    a.terminate();
    let second = b.acquired();
    assert_eq!(second.fence, first + 1);
    assert!(second.follows_in_order(first), "{second:?}");
    let locks = server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'");
    assert_eq!(locks, "0", "nothing is left on a session that is somebody else's next");
}

/// The newest PostgreSQL, to the end of a term by a crash.
#[test]
fn on_postgresql_18_a_crash_is_seen_long_before_the_ttl() {
    let site = Site::on_server(Postgres::new().flavour(Flavour::Postgres18), REPLICA);
    let mut a = site.replica("a").ttl(LONG).crash_witness().elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(LONG).crash_witness().elect();
    b.campaigning();
    a.kill();
    assert_eq!(b.acquired().after, ("crashed".into(), Some(first)));
}
