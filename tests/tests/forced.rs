//! A claim that is ended from outside, and how soon its holder knows (B24, B30; I6).

use leasehold_tests::{Ledger, Site, What, on_every_store};
use std::time::Duration;

on_every_store!(
    a_forced_release_is_noticed_before_any_renewal_is_due,
    a_forced_holder_lets_go_when_its_successor_begins,
);

/// A renewal is due after a third of it: far longer than a test's patience.
const HOUR: Duration = Duration::from_secs(3600);

fn is_renewal(what: &What) -> bool {
    matches!(what, What::Renewed { .. })
}

fn a_forced_release_is_noticed_before_any_renewal_is_due(site: &Site) {
    let mut a = site.replica("a").ttl(HOUR).elect();
    let mut fences = vec![a.acquired().fence];
    for _ in 0..3 {
        site.force();
        assert_eq!(a.lost(fences[fences.len() - 1]), "not-holder");
        let next = a.acquired();
        assert_eq!(next.after, ("forced".into(), fences.last().copied()));
        fences.push(next.fence);
    }
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    assert_eq!(a.count(is_renewal), 0, "no sighting of its own doings was doubted");
}

/// Somebody waits for it, and leads at once; the old holder does not go on beside it until its next renewal.
fn a_forced_holder_lets_go_when_its_successor_begins(site: &Site) {
    let ledger = Ledger::open();
    let elect = |id: &str| {
        site.replica(id).ttl(HOUR).ledger(&ledger).writing_every(Duration::from_millis(20)).elect()
    };
    let mut a = elect("a");
    let first = a.acquired().fence;
    ledger.wait("a works", |entry| entry.fence == first);
    let mut b = elect("b");
    b.campaigning();
    site.force();
    assert_eq!(a.lost(first), "not-holder");
    // Whichever of the two came first.
    let second = site.look_until("it is held again", |glance| glance.fence() > first).fence();
    ledger.wait("and worked under", |entry| entry.fence == second);
    assert!(ledger.lines().is_sorted_by_key(|(fence, _)| *fence), "I1");
    assert_eq!(a.count(is_renewal) + b.count(is_renewal), 0);
}
