//! Wall clocks that jump or disagree move nothing, and local trust ends before the store's (cases B08, B09).
#![cfg(target_os = "linux")] // The wall clock is stepped through the dynamic loader.

use leasehold_tests::{Order, Replica, Site, WallClock, What, on_every_store};
use std::time::Duration;

on_every_store!(
    a_stepped_wall_clock_moves_neither_trust_nor_expiry,
    a_waiter_whose_clock_runs_an_hour_ahead_never_acquires_too_early,
    a_waiter_whose_clock_runs_an_hour_behind_does_not_wait_too_long,
    trust_ends_a_margin_before_the_store_may_grant_it_to_another,
);

const TTL: Duration = Duration::from_millis(500);
const HOUR: f64 = 3600.0;

/// Steps a replica's clock while it holds, while it waits, and the other way round.
fn a_stepped_wall_clock_moves_neither_trust_nor_expiry(site: &Site) {
    let (clock_of_a, clock_of_b) = (site.wall_clock("a"), site.wall_clock("b"));
    let mut a = site.replica("a").ttl(TTL).under(&clock_of_a).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(TTL).under(&clock_of_b).elect();
    b.campaigning();
    for (of_a, of_b) in [(HOUR, 0.0), (-HOUR, 0.0), (0.0, HOUR), (0.0, -HOUR), (HOUR, -HOUR)] {
        clock_of_a.step_to(of_a);
        clock_of_b.step_to(of_b);
        two_renewals(&mut a);
    }
    assert_eq!(site.look().fence(), first);
    let trouble =
        |what: &What| matches!(what, What::Lost { .. } | What::Jeopardy { .. } | What::ClockAnomaly { .. });
    assert_eq!((a.count(trouble), b.count(trouble)), (0, 0));
    // The steps did reach the process: what is told to people follows them.
    assert!(widest_step(&a) > 3_000_000, "the wall clock was not stepped");

    // And the expiry: neither early by B's clock nor late.
    clock_of_b.step_to(HOUR);
    the_successor_comes_at_the_expiry(site, a, b, first);
}

/// Case B08: what is fresh looks long expired to B.
fn a_waiter_whose_clock_runs_an_hour_ahead_never_acquires_too_early(site: &Site) {
    a_skewed_waiter(site, HOUR);
}

/// Case B08: what is expired looks fresh to B. An hour is missed in a test that has seconds.
fn a_waiter_whose_clock_runs_an_hour_behind_does_not_wait_too_long(site: &Site) {
    a_skewed_waiter(site, -HOUR);
}

fn a_skewed_waiter(site: &Site, skew: f64) {
    let clock = site.wall_clock("b");
    clock.step_to(skew);
    let mut a = site.replica("a").ttl(TTL).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(TTL).under(&clock).elect();
    b.campaigning();
    for _ in 0..4 {
        two_renewals(&mut a);
    }
    assert_eq!(b.count(|what| matches!(what, What::Acquired { .. })), 0);
    assert_eq!(site.look().fence(), first);
    the_successor_comes_at_the_expiry(site, a, b, first);
}

fn two_renewals(replica: &mut Replica) {
    for _ in 0..2 {
        replica.wait("a renewal", |said| matches!(said.what, What::Renewed { .. }));
    }
}

fn the_successor_comes_at_the_expiry(site: &Site, mut a: Replica, mut b: Replica, first: u64) {
    a.kill();
    let dead = site.look();
    assert_eq!(dead.fence(), first);
    let second = b.acquired();
    assert_eq!(second.after, ("expired".into(), Some(first)));
    let glance = site.look_until("B holds it", |glance| glance.fence() == second.fence);
    assert!(glance.granted_by() >= dead.expires_from(), "{glance:?} before the end of {dead:?}");
}

/// How far the wall clock of a replica moved against the boot clock, in milliseconds.
fn widest_step(replica: &Replica) -> i64 {
    let offsets: Vec<_> = replica
        .said()
        .into_iter()
        .filter_map(|said| Some(said.wall_ms? - i64::try_from(said.at / 1_000_000).ok()?))
        .collect();
    offsets.iter().max().zip(offsets.iter().min()).map_or(0, |(most, least)| most - least)
}

/// Case B09, with clocks that disagree by a quarter of a ttl either way: no instant has two who trust.
///
/// A is cut off by blocking its own runtime; a thread beside it asks the lease every millisecond.
fn trust_ends_a_margin_before_the_store_may_grant_it_to_another(site: &Site) {
    let quarter = TTL.as_secs_f64() / 4.0;
    let clocks: [WallClock; 2] = ["a", "b"].map(|id| site.wall_clock(id));
    let margin = TTL.as_nanos() as u64 / 10;
    for (skew_of_a, skew_of_b) in [(quarter, -quarter), (-quarter, quarter)] {
        clocks[0].step_to(skew_of_a);
        clocks[1].step_to(skew_of_b);
        let mut a = site.replica("a").ttl(TTL).under(&clocks[0]).on_one_thread().sampled().hold();
        let first = a.acquired().fence;
        let mut b = site.replica("b").ttl(TTL).under(&clocks[1]).sampled().hold();
        b.campaigning();
        a.order(Order::Block(3 * TTL.as_millis() as u64));
        let second = b.acquired();
        assert_eq!(second.after, ("expired".into(), Some(first)));
        let glance = site.look_until("B holds it", |glance| glance.fence() == second.fence);
        let trusted = a.wait("the end of trust", |said| matches!(said.what, What::TrustedUntil { .. }));
        let What::TrustedUntil { last } = trusted.what else { unreachable!() };
        assert!(last > 0, "A never trusted its lease");
        assert!(last + margin <= glance.granted_by(), "A trusted at {last}, B was granted: {glance:?}");
        b.order(Order::Finish);
        b.wait("the release", |said| said.what == What::Released);
    }
}
