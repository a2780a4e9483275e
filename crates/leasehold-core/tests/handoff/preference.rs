//! Leadership moves to whoever is preferred, and does not flap.

use super::common::{lease, replica};
use leasehold_core::{
    AttemptId, Candidacy, Moment, ReplicaId,
    handoff::{Preference, preference::Preferring},
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

fn candidate(name: &str, priority: i32) -> Candidacy {
    let id = AttemptId::from_bytes([name.as_bytes()[0]; 16]);
    Candidacy { name: lease(), replica: replica(name), id, priority }
}

fn preferring() -> Preferring {
    let preference = Preference { settle: SECOND * 30, cool_down: SECOND * 300, stay: SECOND * 3600 };
    Preferring::begin(preference, 5, at(0))
}

#[test]
fn a_preferred_candidate_that_stays_in_line_is_handed_to_after_the_cool_down() {
    let mut preferring = preferring();
    let roster = [candidate("best", 9), candidate("better", 7), candidate("same", 5)];
    for second in (0..300).step_by(15) {
        assert_eq!(preferring.look(at(second), &roster), None, "the term is {second} s old");
    }
    assert_eq!(preferring.look(at(300), &roster), Some(replica("best")));
    // It declined, or did not take it: not at once again.
    for second in (315..600).step_by(15) {
        assert_eq!(preferring.look(at(second), &roster), None);
    }
    assert_eq!(preferring.look(at(600), &roster), Some(replica("best")));
}

#[test]
fn a_candidate_that_comes_and_goes_is_not_preferred() {
    let mut preferring = preferring();
    let flapping = [candidate("flapping", 9)];
    for second in (0..3000).step_by(15) {
        let roster = if (second / 15) % 2 == 0 { &flapping[..] } else { &[] };
        assert_eq!(preferring.look(at(second), roster), None::<ReplicaId>);
    }
    // And while it does, the next best that has settled is.
    let steady = [candidate("flapping", 9), candidate("steady", 6)];
    for second in [3000, 3015] {
        assert_eq!(preferring.look(at(second), &steady[1..]), None);
    }
    assert_eq!(preferring.look(at(3030), &steady), Some(replica("steady")));
}

#[test]
fn equals_and_lesser_ones_are_not_preferred() {
    let mut preferring = preferring();
    let roster = [candidate("same", 5), candidate("lesser", -1)];
    assert!((0..5000).step_by(15).all(|second| preferring.look(at(second), &roster).is_none()));
}

#[test]
fn leadership_stays_where_it_was_put_for_its_time_and_no_longer() {
    let mut preferring = preferring();
    preferring.stay(at(10), SECOND * 3600);
    let roster = [candidate("best", 9)];
    let moved = (0..4000).step_by(15).find(|second| preferring.look(at(*second), &roster).is_some());
    assert_eq!(moved, Some(3615));
}

#[test]
fn times_beyond_reason_are_held() {
    let endless = Preference { settle: Duration::MAX, cool_down: Duration::MAX, stay: Duration::MAX };
    assert_eq!(endless.look_every(), SECOND * 60);
    let none = Preference { settle: Duration::ZERO, cool_down: Duration::ZERO, stay: Duration::ZERO };
    assert_eq!(none.look_every(), SECOND);
    let mut preferring = Preferring::begin(endless, 0, at(u64::MAX / 1_000_000_000));
    preferring.stay(at(0), Duration::MAX);
    assert_eq!(preferring.look(at(0), &[candidate("best", 9)]), None);
    let mut eager = Preferring::begin(none, 0, at(0));
    assert_eq!(eager.look(at(0), &[candidate("best", 9)]), Some(replica("best")));
}
