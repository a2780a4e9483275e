//! Ending on purpose: work first, then the lease, and the next one hears of it (cases B62, B71, B74, B98).

use leasehold_tests::{Ledger, Order, Site, What, on_every_store};
use std::time::Duration;

on_every_store!(
    a_terminated_leader_is_replaced_before_its_ttl,
    the_lease_is_released_after_the_last_write_of_a_slow_worker,
    a_worker_that_returns_gives_its_lease_up,
    a_worker_that_panics_gives_its_lease_up,
    an_owner_that_is_dropped_leaves_no_renewal_behind,
    a_runtime_that_is_dropped_leaves_no_renewal_behind,
    a_killed_owner_leaves_no_renewal_behind,
    a_waiter_that_leaves_changes_nothing,
    a_release_around_the_start_of_a_waiter_is_never_missed,
);

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(300);

/// Case B71: the successor leads within a test's patience, which is shorter than the ttl.
fn a_terminated_leader_is_replaced_before_its_ttl(site: &Site) {
    let mut a = site.replica("a").ttl(LONG).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(LONG).elect();
    b.campaigning();
    let expiry = site.look().expires_from();
    a.terminate();
    let second = b.acquired();
    assert!(second.follows_in_order(first), "{second:?}");
    assert!(second.at < expiry, "the ttl was waited for");
    a.wait("an orderly end", |said| said.what == What::Stopped { how: "clean".into() });
    assert!(a.exit().success());
    // Given up on purpose: not a loss that anyone needs to hear of, but the end of the term all the same.
    assert_eq!(a.count(|what| matches!(what, What::Lost { .. })), 0);
    assert_eq!(a.count(|what| *what == What::StoodLost { cause: "released".into() }), 1);
}

/// Case B62 and I6: the worker goes on for one and a half ttls after it was asked to end, and is renewed meanwhile.
fn the_lease_is_released_after_the_last_write_of_a_slow_worker(site: &Site) {
    let ledger = Ledger::open();
    let linger = SHORT * 3 / 2;
    let mut a = site.replica("a").ttl(SHORT).ledger(&ledger).lingering(linger).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(SHORT).ledger(&ledger).writing_every(Duration::from_millis(10)).elect();
    b.campaigning();
    a.terminate();
    a.wait("the question", |said| matches!(said.what, What::Quiescing { .. }));
    // In this order: renewed while it drains, its last write, its end, the release.
    a.wait("a renewal of the draining term", |said| matches!(said.what, What::Renewed { .. }));
    let last = ledger.wait("its last words", |entry| entry.text == "last words");
    a.wait("its end", |said| said.what == What::Ended);
    let released = a.wait("the release", |said| said.what == What::Released);
    let second = b.acquired();
    assert!(second.follows_in_order(first), "{second:?}");
    assert!(last.at < released.at && last.at < second.at);
    let first_of_b = ledger.wait("B's first line", |entry| entry.fence == second.fence);
    assert!(last.at < first_of_b.at);
    assert!(a.exit().success());
    assert!(ledger.lines().iter().filter(|(fence, _)| *fence == first).count() > 3, "it did drain");
}

fn a_worker_that_returns_gives_its_lease_up(site: &Site) {
    a_worker_that_ends_gives_its_lease_up(site, Order::Finish);
}

/// Case B74: a panic in the task that owns the holding.
fn a_worker_that_panics_gives_its_lease_up(site: &Site) {
    a_worker_that_ends_gives_its_lease_up(site, Order::Panic);
}

fn a_worker_that_ends_gives_its_lease_up(site: &Site, order: Order) {
    let mut a = site.replica("a").ttl(LONG).hold();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(LONG).hold();
    b.campaigning();
    a.order(order);
    let after = b.acquired();
    assert!(after.follows_in_order(first), "{after:?}");
    assert!(a.is_alive());
}

/// Case B74: the owning task is aborted; the process, its node and its runtime live on.
fn an_owner_that_is_dropped_leaves_no_renewal_behind(site: &Site) {
    let mut a = site.replica("a").ttl(SHORT).hold();
    let first = a.acquired().fence;
    a.wait("a renewal", |said| matches!(said.what, What::Renewed { .. }));
    a.order(Order::Abandon);
    a.wait("the worker's end", |said| said.what == What::Ended);
    a.wait("the release", |said| said.what == What::Released);
    nothing_is_renewed(site, 0);
    assert!(a.is_alive());
    // It wants nothing any more; another is granted at once.
    let mut b = site.replica("b").ttl(LONG).hold_once();
    let after = b.acquired();
    assert!(after.follows_in_order(first), "{after:?}");
}

/// Case B74: what is left of the process cannot even release.
fn a_runtime_that_is_dropped_leaves_no_renewal_behind(site: &Site) {
    let mut a = site.replica("a").ttl(SHORT).hold();
    a.acquired();
    a.wait("a renewal", |said| matches!(said.what, What::Renewed { .. }));
    a.order(Order::DropRuntime);
    a.wait("the runtime's end", |said| said.what == What::RuntimeDropped);
    // The store's own thread may have had one renewal in its hands.
    nothing_is_renewed(site, 1);
    assert!(a.is_alive());
}

fn a_killed_owner_leaves_no_renewal_behind(site: &Site) {
    let mut a = site.replica("a").ttl(SHORT).hold();
    a.acquired();
    a.wait("a renewal", |said| matches!(said.what, What::Renewed { .. }));
    a.kill();
    nothing_is_renewed(site, 0);
}

/// Looks at the record until it is vacant: what remains never grows, but for so many times at most.
fn nothing_is_renewed(site: &Site, in_flight: usize) {
    let mut before = site.look();
    let mut renewed = 0;
    while before.fence() != 0 {
        // A claim that nobody renews is vacant at its expiry, so this ends by itself.
        let now = site.look();
        if now.record.remaining() > before.record.remaining() {
            renewed += 1;
            assert!(
                renewed <= in_flight,
                "renewed {renewed} times after its owner's end: {before:?}, {now:?}"
            );
        }
        before = now;
    }
}

/// A waiter comes and goes, in order and by a kill, and the holder notices nothing.
fn a_waiter_that_leaves_changes_nothing(site: &Site) {
    let mut a = site.replica("a").ttl(SHORT).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(SHORT).elect();
    b.campaigning();
    b.order(Order::Leave);
    assert!(b.exit().success());
    let mut c = site.replica("c").ttl(SHORT).elect();
    c.campaigning();
    c.kill();
    for _ in 0..4 {
        a.wait("a renewal", |said| matches!(said.what, What::Renewed { .. }));
    }
    assert_eq!(site.look().fence(), first);
    assert_eq!(a.count(|what| matches!(what, What::Lost { .. } | What::Jeopardy { .. })), 0);
    // What the dead waiter left in the roster holds up nobody.
    let mut d = site.replica("d").ttl(SHORT).elect();
    d.campaigning();
    a.terminate();
    let after = d.acquired();
    assert!(after.follows_in_order(first), "{after:?}");
}

/// Case B98: between the waiter's first question and its first watch there is no gap into which a release could fall.
fn a_release_around_the_start_of_a_waiter_is_never_missed(site: &Site) {
    let mut holder = site.replica("r0").ttl(LONG).elect();
    let mut last = holder.acquired().fence;
    for round in 1..=20 {
        let mut next = site.replica(&format!("r{round}")).ttl(LONG).elect();
        // From before the waiter's first call to after it waits.
        std::thread::sleep(Duration::from_millis(round * 2));
        holder.terminate();
        let term = next.acquired();
        assert!(term.follows_in_order(last), "round {round}: {term:?}");
        assert!(holder.exit().success());
        (holder, last) = (next, term.fence);
    }
}
