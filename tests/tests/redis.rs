//! What becomes of leaders when their Redis server fails (cases B33, B34, B36, B38, B100; I1, I2, I10).

use leasehold_tests::{Backend, Ledger, Site, What};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(30);

fn site() -> Site {
    Site::new(Backend::Redis, env!("CARGO_BIN_EXE_replica"))
}

fn is_renewal(what: &What) -> bool {
    matches!(what, What::Renewed { .. })
}

/// B33, the short outage: renewals go on, under the same fence.
#[test]
fn a_restart_within_the_ttl_costs_no_term() {
    let site = site();
    let mut a = site.replica("a").ttl(Duration::from_secs(6)).elect();
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
    let elect = |id: &str| {
        site.replica(id).ttl(SHORT).ledger(&ledger).writing_every(Duration::from_millis(20)).elect()
    };
    let mut a = elect("a");
    let first = a.acquired().fence;
    site.on_redis(|server| server.pause());
    a.lost(first);
    site.on_redis(|server| server.resume());
    let second = a.acquired().fence;
    assert!(second > first);
    for _ in 0..3 {
        a.wait("it renews as before", |said| is_renewal(&said.what));
    }
    ledger.wait("and writes", |entry| entry.fence >= second);
    assert!(ledger.lines().is_sorted_by_key(|(fence, _)| *fence), "I1");
}

/// B36 and I2: the keys are gone; the holder learns it, and what everybody remembers repairs the counter.
#[test]
fn a_flush_ends_the_term_and_no_fence_is_issued_twice() {
    let site = site();
    let mut a = site.replica("a").ttl(SHORT).elect();
    let mut fences = vec![a.acquired().fence];
    for _ in 0..3 {
        site.on_redis(|server| server.cli(&["FLUSHALL"]));
        a.lost(fences[fences.len() - 1]);
        fences.push(a.acquired().fence);
    }
    assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "{fences:?}");
}

/// B38: the server loses its scripts all the time.
#[test]
fn a_server_that_forgets_its_scripts_costs_no_renewal() {
    let site = site();
    let mut a = site.replica("a").ttl(SHORT).elect();
    let first = a.acquired().fence;
    for _ in 0..10 {
        site.on_redis(|server| server.cli(&["SCRIPT", "FLUSH"]));
        a.wait("a renewal", |said| is_renewal(&said.what));
    }
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
    site.on_redis(|server| {
        server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    });
    a.terminate();
    let second = b.acquired();
    assert!(second.follows_in_order(first), "{second:?}");
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
        site.on_redis(|server| server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]));
        let written = ledger.journal().len();
        ledger.wait_behind(written, &format!("work goes on, round {round}"), |entry| entry.fence >= first);
    }
    assert!(ledger.lines().is_sorted_by_key(|(fence, _)| *fence), "I1");
}
