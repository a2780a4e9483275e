//! The end of a holder's process, and what its successor learns of it (cases B13, B76; I2).

use leasehold_tests::{Ledger, Order, Site, What, on_every_store};
use std::{thread, time::Duration};

on_every_store!(
    with_the_witness_a_crash_is_seen_long_before_the_ttl,
    without_the_witness_a_crash_costs_the_ttl_and_no_less,
    a_long_job_does_not_make_for_a_long_recovery,
    a_newcomer_takes_what_expired_long_ago_at_once,
    fences_go_on_growing_when_everything_is_started_anew,
);

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(400);

/// The successor must lead within a test's patience, which is shorter than what is left of 30 s after a renewal.
fn with_the_witness_a_crash_is_seen_long_before_the_ttl(site: &Site) {
    let mut a = site.replica("a").ttl(LONG).crash_witness().elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(LONG).crash_witness().elect();
    b.campaigning();
    let expiry = site.look().expires_from();
    a.kill();
    let second = b.acquired();
    assert!(second.fence > first);
    assert_eq!(second.after, ("crashed".into(), Some(first)));
    assert!(second.at < expiry, "the ttl was waited for");
    // And a third, of a holder that was itself a successor.
    let mut c = site.replica("c").ttl(LONG).crash_witness().elect();
    c.campaigning();
    b.kill();
    assert_eq!(c.acquired().after, ("crashed".into(), Some(second.fence)));
}

fn without_the_witness_a_crash_costs_the_ttl_and_no_less(site: &Site) {
    let mut a = site.replica("a").ttl(SHORT).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(SHORT).elect();
    b.campaigning();
    a.kill();
    // Nobody renews any more: this is when the store may give it to another.
    let dead = site.look();
    assert_eq!(dead.fence(), first, "the dead hold on until their ttl");
    let second = b.acquired();
    assert_eq!(second.after, ("expired".into(), Some(first)));
    let glance = site.look_until("B holds it", |glance| glance.fence() == second.fence);
    assert!(glance.granted_by() >= dead.expires_from(), "granted before the expiry: {glance:?}, {dead:?}");
}

/// Case B76: the work may take an hour; its lease is short, and renewed while it lives.
fn a_long_job_does_not_make_for_a_long_recovery(site: &Site) {
    let ledger = Ledger::open();
    let elect = |id: &str| {
        site.replica(id).ttl(SHORT).ledger(&ledger).writing_every(Duration::from_millis(20)).elect()
    };
    let mut a = elect("a");
    let first = a.acquired().fence;
    let mut b = elect("b");
    b.campaigning();
    for _ in 0..4 {
        a.wait("a renewal", |said| matches!(said.what, What::Renewed { .. }));
    }
    assert_eq!(site.look().fence(), first, "one job, one term, many renewals");
    a.kill();
    assert_eq!(b.acquired().after, ("expired".into(), Some(first)));
    ledger.wait("the job is taken up again", |entry| entry.fence > first);
}

/// Case B13. The newcomer's own ttl is longer than a test's patience: it would be missed if it were waited for.
fn a_newcomer_takes_what_expired_long_ago_at_once(site: &Site) {
    let ttl = Duration::from_millis(100);
    let mut a = site.replica("a").ttl(ttl).elect();
    let first = a.acquired().fence;
    a.kill();
    site.look_until_vacant();
    thread::sleep(10 * ttl);
    let mut b = site.replica("b").ttl(LONG).elect();
    assert_eq!(b.acquired().after, ("expired".into(), Some(first)));
    let bids = b.count(|what| *what == What::Campaigning);
    assert_eq!(bids, 1);
}

/// I2, over every way in which processes end, and with none left in between.
fn fences_go_on_growing_when_everything_is_started_anew(site: &Site) {
    let mut last = 0;
    for (round, fate) in [(1, "none"), (2, "released"), (3, "expired"), (4, "released"), (5, "expired")] {
        let mut replica = site.replica(&format!("r{round}")).ttl(SHORT).elect();
        let term = replica.acquired();
        assert!(term.fence > last, "round {round}: {} after {last}", term.fence);
        let after = (last != 0).then_some(last);
        assert_eq!(term.after, (fate.into(), after), "round {round}");
        last = term.fence;
        if round % 2 == 1 {
            replica.order(Order::Leave);
            assert!(replica.exit().success());
        } else {
            replica.kill();
        }
    }
}
