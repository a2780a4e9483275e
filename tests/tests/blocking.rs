//! Work that blocks its thread: its lease is renewed beside it, or lost, but never kept in silence (case B05).

use leasehold_tests::{Ledger, Order, Site, What, on_every_store};
use std::time::Duration;

on_every_store!(
    work_that_blocked_past_its_lease_writes_no_more,
    renewals_on_a_runtime_of_their_own_outlast_a_block,
    a_wedged_worker_loses_its_lease_although_its_renewals_could_go_on,
);

const LONG: Duration = Duration::from_secs(30);

fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}

fn work_that_blocked_past_its_lease_writes_no_more(site: &Site) {
    let ledger = Ledger::open();
    let ttl = Duration::from_millis(300);
    let mut a = site.replica("a").ttl(ttl).ledger(&ledger).on_one_thread().hold();
    let first = a.acquired().fence;
    a.order(Order::Block(ms(3 * ttl)));
    a.order(Order::Write("after the block".into()));
    let mut b = site.replica("b").ttl(LONG).ledger(&ledger).hold();
    assert_eq!(b.acquired().after, ("expired".into(), Some(first)));
    a.heard("the loss", |said| said.fence == Some(first) && matches!(said.what, What::Lost { .. }));
    a.heard("the end of the holding", |said| matches!(said.what, What::NotHeld { .. }));
    b.order(Order::Write("by b".into()));
    b.wrote("by b");
    // Nothing of A was even refused: it asked its lease before it wrote, or was dropped before it asked.
    let journal = ledger.journal();
    assert!(journal.iter().all(|entry| entry.fence > first), "{journal:?}");
}

fn renewals_on_a_runtime_of_their_own_outlast_a_block(site: &Site) {
    let ledger = Ledger::open();
    // Less than the ttl, for which the worker may give no pulse; more than a renewal takes to come.
    let (ttl, block) = (Duration::from_millis(1200), Duration::from_millis(700));
    let mut a = site.replica("a").ttl(ttl).ledger(&ledger).on_one_thread().renewing_apart().elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(ttl).elect();
    b.campaigning();
    for _ in 0..2 {
        a.order(Order::Block(ms(block)));
        let unblocked = a.wait("the end of the block", |said| said.what == What::Unblocked).at;
        let blocked = unblocked - block.as_nanos() as u64;
        let renewed = a.said().into_iter().filter(|said| matches!(said.what, What::Renewed { .. }));
        assert!(renewed.filter(|said| said.at > blocked && said.at < unblocked).count() > 0);
        a.order(Order::Write("still".into()));
        a.wrote("still");
    }
    assert_eq!(a.count(|what| matches!(what, What::Lost { .. })), 0);
    assert_eq!(site.look().fence(), first);
}

fn a_wedged_worker_loses_its_lease_although_its_renewals_could_go_on(site: &Site) {
    let ttl = Duration::from_millis(300);
    let mut a = site.replica("a").ttl(ttl).on_one_thread().renewing_apart().elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(ttl).elect();
    b.campaigning();
    a.order(Order::Block(ms(10 * ttl)));
    // Told while the worker is still wedged.
    assert_eq!(a.lost(first), "no-pulse");
    assert_eq!(b.acquired().after, ("expired".into(), Some(first)));
    assert_eq!(a.count(|what| *what == What::Unblocked), 0);
}
