//! The machines of the handoff in every order of events, within bounds.
//!
//! The machines are those of the crate; around them is a store with one lease, a driver that does what they say, and
//! everything that can go wrong: letters lost (never delivered), late, and doubled; crashes after any step; a lease lost in
//! the middle; releases refused, with a lost answer, or arriving late; workers that never end; several asks. One tick of the
//! clock is one millisecond of the plan.

mod act;
mod bounds;
mod driver;
mod rules;
mod store;
mod world;

use bounds::{Bounds, Kind, Mutation};
use leasehold_core::handoff::{Otherwise, To};
use stateright::{Checker, HasDiscoveries, Model};

/// Explores the whole space, or until a rule is broken, if one is to be.
fn explore(bounds: Bounds, until: Option<&'static str>) -> (usize, Vec<&'static str>) {
    let title = bounds.title;
    let enough = until.map_or(HasDiscoveries::All, |rule| HasDiscoveries::AllOf([rule].into()));
    let checker = bounds.checker().threads(2).finish_when(enough).spawn_bfs().join();
    let found: Vec<_> = checker.discoveries().into_keys().collect();
    println!("{title}: {} states, {} deep", checker.unique_state_count(), checker.max_depth());
    (checker.unique_state_count(), found)
}

/// Whatever holds always was not broken; whatever should be seen somewhere was seen. `LEASEHOLD_MODEL_MORE` is how many
/// more things go wrong than usual; each multiplies the states by ten or more.
fn holds(mut bounds: Bounds) {
    let more = std::env::var("LEASEHOLD_MODEL_MORE").ok().and_then(|more| more.parse().ok()).unwrap_or(0);
    bounds.mishaps += more;
    let title = bounds.title;
    let leaves = bounds.otherwise == Otherwise::Leave;
    let (states, found) = explore(bounds, None);
    let broken: Vec<_> = found.iter().filter(|name| name.starts_with('I')).collect();
    assert!(broken.is_empty(), "{title}: {broken:?}");
    for seen in ["done", "aborted", "released", "note inherited"] {
        // Whoever leaves does not abort.
        assert!(found.contains(&seen) != (leaves && seen == "aborted"), "{title}: {seen}? {found:?}");
    }
    assert!(states > 1000, "{title}: the space has shrunk to {states} states; is it still what it was?");
}

/// The rules notice when what they rest on is taken away.
fn breaks(mutation: Mutation, rule: &'static str) {
    let kinds: &[Kind] = match mutation {
        Mutation::UnknownIsReleased => &[Kind::Release],
        Mutation::NoteStays => &[Kind::Crash],
        _ => &[],
    };
    // Long enough that an expiry does not make an assumption true after the fact.
    let ttl = if mutation == Mutation::UnknownIsReleased { 6 } else { 1 };
    let bounds = Bounds { title: "mutant", ttl, mutation, mishaps: 1, kinds, terms: 3, ..Bounds::three() };
    let (_, found) = explore(bounds, Some(rule));
    assert!(found.contains(&rule), "{mutation:?} was not noticed by {rule}, only {found:?}");
}

#[test]
fn a_crash_of_one_of_two() {
    holds(Bounds::two("two, crash", 1, &[Kind::Crash]));
}

#[test]
fn a_crash_of_one_of_three() {
    holds(Bounds { replicas: 3, ..Bounds::two("three, crash", 1, &[Kind::Crash]) });
}

#[test]
fn a_crash_while_the_incumbent_must_leave() {
    let bounds = Bounds::two("two, leave, crash", 1, &[Kind::Crash]);
    holds(Bounds { otherwise: Otherwise::Leave, ..bounds });
}

#[test]
fn a_lease_lost_and_a_worker_that_ends() {
    holds(Bounds::two("two, loss", 1, &[Kind::Loss]));
}

#[test]
fn a_lease_lost_while_the_incumbent_must_leave() {
    let bounds = Bounds::two("two, leave, loss", 1, &[Kind::Loss]);
    holds(Bounds { otherwise: Otherwise::Leave, ..bounds });
}

#[test]
fn releases_in_trouble() {
    holds(Bounds::two("two, releases", 3, &[Kind::Release]).slow_to_commit());
    let three = Bounds { replicas: 3, ..Bounds::two("three, releases", 2, &[Kind::Release]) };
    holds(three.slow_to_commit());
}

#[test]
fn letters_that_come_twice() {
    holds(Bounds::two("two, letters", 1, &[Kind::Letter]));
    holds(Bounds { replicas: 3, ..Bounds::two("three, letters", 1, &[Kind::Letter]) });
}

#[test]
fn successors_that_withdraw() {
    holds(Bounds::two("two, successors", 2, &[Kind::Successor]));
}

#[test]
fn one_of_three_withdraws() {
    holds(Bounds { replicas: 3, ..Bounds::two("three, successors", 1, &[Kind::Successor]) });
}

#[test]
fn the_named_one_of_three_withdraws() {
    let bounds = Bounds::two("three, named, successors", 1, &[Kind::Successor]);
    holds(Bounds { replicas: 3, to: To::Replica(world::id(2)), ..bounds });
}

#[test]
fn a_second_ask() {
    holds(Bounds { ticks: 5, ..Bounds::two("two, second ask", 1, &[Kind::Ask]) });
}

#[test]
fn without_the_join_gate_a_lease_is_released_under_a_worker() {
    breaks(Mutation::NoJoinGate, "I6: no release before the worker was joined");
    breaks(Mutation::NoJoinGate, "I8: whoever works holds the lease");
}

#[test]
fn without_the_heir_check_somebody_else_gets_the_lease() {
    breaks(Mutation::NoHeirCheck, "I8: only the heir is granted in its window");
}

#[test]
fn a_successor_that_takes_yours_for_a_grant_is_a_second_believer() {
    breaks(Mutation::YoursIsAGrant, "I8: whoever works holds the lease");
}

#[test]
fn a_release_that_is_taken_for_done_when_nobody_knows_is_noticed() {
    breaks(Mutation::UnknownIsReleased, "I7: an unknown release is never reported as done");
}

#[test]
fn a_note_that_is_not_taken_away_is_given_twice() {
    breaks(Mutation::NoteStays, "I9: a note is given to the very next term only");
}
