//! Two processes that call themselves by one name are two all the same.

use leasehold_tests::{Ledger, Order, Site, What, on_every_store};
use std::time::Duration;

on_every_store!(
    of_two_processes_with_one_replica_id_one_holds,
    a_namesake_that_wakes_up_late_leaves_the_claim_alone,
);

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(300);

fn of_two_processes_with_one_replica_id_one_holds(site: &Site) {
    let mut first = site.replica("twin").ttl(SHORT).hold();
    let fence = first.acquired().fence;
    let claim = site.look().record.claim().cloned();

    // Not taken for the holder when it asks, …
    let mut asking = site.replica("twin").ttl(SHORT).hold_once();
    let refused = asking.wait("the answer", |said| matches!(said.what, What::NotHeld { .. }));
    let What::NotHeld { error } = refused.what else { unreachable!() };
    assert!(error.contains("twin"), "it says by whom the lease is held: {error}");
    // … when it waits, when it leaves, …
    let mut waiting = site.replica("twin").ttl(SHORT).elect();
    waiting.campaigning();
    waiting.terminate();
    assert!(waiting.exit().success());
    // … or when it is killed.
    let mut waiting = site.replica("twin").ttl(SHORT).crash_witness().elect();
    waiting.campaigning();
    waiting.kill();

    for _ in 0..3 {
        first.wait("a renewal", |said| matches!(said.what, What::Renewed { .. }));
    }
    assert_eq!(site.look().record.claim(), claim.as_ref(), "the claim of fence {fence} was touched");
    assert_eq!(first.count(|what| matches!(what, What::Lost { .. })), 0);
}

/// The old holder's renewal and release name its own claim, not its name.
fn a_namesake_that_wakes_up_late_leaves_the_claim_alone(site: &Site) {
    let ledger = Ledger::open();
    let mut old = site.replica("twin").ttl(SHORT).ledger(&ledger).hold();
    let first = old.acquired().fence;
    old.pause();
    let mut new = site.replica("twin").ttl(LONG).ledger(&ledger).hold();
    let second = new.acquired();
    assert_eq!(second.after, ("expired".into(), Some(first)));
    let claim = site.look().record.claim().cloned();

    old.resume();
    old.lost(first);
    old.wait("the end of the old holding", |said| matches!(said.what, What::NotHeld { .. }));
    // Its shutdown awaits its last calls to the store.
    old.order(Order::Leave);
    old.wait("an orderly end", |said| said.what == What::Stopped { how: "clean".into() });
    assert_eq!(site.look().record.claim(), claim.as_ref());
    new.order(Order::Write("by the new one".into()));
    new.wrote("by the new one");
    assert_eq!(ledger.lines(), [(second.fence, "by the new one".to_owned())]);
}
