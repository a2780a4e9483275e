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

use bounds::{Bounds, Mutation};
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

/// Whatever holds always was not broken; whatever should be seen somewhere was seen.
fn holds(bounds: Bounds, least: usize, seen: &[&'static str]) {
    let title = bounds.title;
    let (states, found) = explore(bounds, None);
    let broken: Vec<_> = found.iter().filter(|name| name.starts_with('I')).collect();
    assert!(broken.is_empty(), "{title}: {broken:?}");
    for ending in seen {
        assert!(found.contains(ending), "{title}: {ending} was never seen, only {found:?}");
    }
    assert!(states > least, "{title}: the space has shrunk to {states} states; is it still what it was?");
}

/// The rules notice when what they rest on is taken away.
fn breaks(mutation: Mutation, rule: &'static str) {
    let (_, found) = explore(Bounds { title: "mutant", mutation, terms: 3, ..Bounds::three() }, Some(rule));
    assert!(found.contains(&rule), "{mutation:?} was not noticed by {rule}, only {found:?}");
}

#[test]
fn two_replicas_one_of_which_asks_to_be_relieved() {
    holds(Bounds::two(), 1000, &["done", "aborted", "released", "note inherited"]);
}

#[test]
fn two_replicas_one_of_which_must_leave() {
    let bounds = Bounds { title: "two replicas, leave", otherwise: Otherwise::Leave, ..Bounds::two() };
    holds(bounds, 1000, &["done", "released"]);
}

#[test]
fn three_replicas_one_of_which_asks_to_be_relieved() {
    holds(Bounds::three(), 1000, &["done", "aborted", "released"]);
}

#[test]
fn three_replicas_one_of_which_is_named() {
    let to = To::Replica(world::id(2));
    holds(Bounds { title: "three replicas, one named", to, ..Bounds::three() }, 1000, &["done", "aborted"]);
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
fn a_release_that_is_taken_for_done_when_nobody_knows_leaves_a_stuck_term() {
    breaks(Mutation::UnknownIsReleased, "I7: an unknown release is never reported as done");
}

#[test]
fn a_note_that_is_not_taken_away_is_given_twice() {
    breaks(Mutation::NoteStays, "I9: a note is given to the very next term only");
}
