//! The successor, step by step.

use super::common::{MS, PROPOSE, at, fence, id, lease, letter, replica};
use leasehold_core::{
    AttemptId, Claim, LeaseRecord, LeaseState,
    handoff::{
        Message, Successor,
        successor::{Action, Event},
    },
};
use std::time::Duration;

fn successor() -> Successor {
    Successor::new(replica("b"), lease())
}

fn heard(successor: &mut Successor, ms: u64, handoff: u128, term: u64, message: Message) -> Vec<Action> {
    let letter = letter(handoff, term, message);
    successor.step(at(ms), Event::Letter { from: replica("a"), letter })
}

fn said(todo: &[Action]) -> Vec<&Message> {
    let sent = todo.iter().filter_map(|action| match action {
        Action::Send { letter, .. } => Some(&letter.message),
        _ => None,
    });
    sent.collect()
}

fn warms_up(todo: &[Action]) -> bool {
    todo.iter().any(|action| matches!(action, Action::WarmUp { .. }))
}

fn reserved_for(heir: &str, counter: u64) -> Event {
    let state = LeaseState::Reserved { heir: replica(heir), remaining: MS };
    Event::Sighted(LeaseRecord { counter: Some(fence(counter)), state, ..LeaseRecord::unknown(lease()) })
}

#[test]
fn it_warms_up_says_ready_bids_and_says_assumed() {
    let mut b = successor();
    assert!(warms_up(&heard(&mut b, 0, 1, 7, PROPOSE)));
    assert!(said(&heard(&mut b, 1, 1, 7, PROPOSE)).is_empty(), "doubled: it warms up once");
    assert_eq!(said(&b.step(at(2), Event::WarmedUp(id(1)))), [&Message::Ready]);
    assert_eq!(said(&heard(&mut b, 3, 1, 7, PROPOSE)), [&Message::Ready], "its answer was lost");
    assert!(heard(&mut b, 4, 1, 7, Message::Yours).contains(&Action::Bid));
    let assumed = Message::Assumed { fence: fence(8) };
    assert_eq!(said(&b.step(at(5), Event::Granted(fence(8)))), [&assumed]);
    assert_eq!(b.handoff(), None);
}

#[test]
fn a_lost_yours_is_made_good_by_the_record() {
    let mut b = successor();
    heard(&mut b, 0, 1, 7, PROPOSE);
    assert!(!b.step(at(1), reserved_for("c", 7)).contains(&Action::Bid));
    assert!(b.step(at(2), reserved_for("b", 7)).contains(&Action::Bid));
    assert!(!b.step(at(3), reserved_for("b", 7)).contains(&Action::Bid), "one hint a reservation");
    // Whatever a forged letter said before, the record counts.
    let mut b = successor();
    heard(&mut b, 0, 9, 7, Message::Yours);
    assert!(b.step(at(1), reserved_for("b", 7)).contains(&Action::Bid));
}

#[test]
fn abort_and_silence_put_it_back_in_line() {
    let mut b = successor();
    heard(&mut b, 0, 1, 7, PROPOSE);
    assert!(heard(&mut b, 1, 1, 7, Message::Abort).contains(&Action::StandDown { handoff: id(1) }));
    assert!(!warms_up(&heard(&mut b, 2, 1, 7, PROPOSE)), "late: it was taken back");
    assert!(warms_up(&heard(&mut b, 3, 2, 7, PROPOSE)));
    assert!(b.step(at(503), Event::Wake).contains(&Action::StandDown { handoff: id(2) }));
    assert!(said(&b.step(at(504), Event::WarmedUp(id(2)))).is_empty());
}

#[test]
fn it_declines_when_it_is_unfit_or_unwilling() {
    let mut b = successor();
    heard(&mut b, 0, 1, 7, PROPOSE);
    let todo = b.step(at(1), Event::Unfit { handoff: id(1), why: "cold".into() });
    assert_eq!(said(&todo), [&Message::Decline { why: "cold".into() }]);
    heard(&mut b, 2, 2, 7, PROPOSE);
    b.step(at(3), Event::WarmedUp(id(2)));
    let todo = b.step(at(4), Event::Unwilling { why: "leaving".into() });
    assert_eq!(said(&todo), [&Message::Decline { why: "leaving".into() }], "also after it was ready");
    let todo = heard(&mut b, 5, 3, 7, PROPOSE);
    assert!(!warms_up(&todo) && said(&todo).len() == 1);
}

#[test]
fn a_term_that_is_over_proposes_nothing() {
    let mut b = successor();
    b.step(at(0), reserved_for("c", 9));
    let before = b.clone();
    for message in [PROPOSE, Message::Yours, Message::Abort] {
        heard(&mut b, 1, 1, 8, message);
        assert_eq!(b, before);
    }
}

/// Whoever puts leadership somewhere on purpose wants it to stay there.
#[test]
fn how_long_leadership_stays_is_told_to_whoever_takes_over() {
    let mut b = successor();
    let stay = Duration::from_secs(60);
    heard(&mut b, 0, 1, 7, Message::Propose { stay });
    b.step(at(1), Event::WarmedUp(id(1)));
    heard(&mut b, 2, 1, 7, Message::Yours);
    let todo = b.step(at(3), Event::Granted(fence(8)));
    assert!(todo.contains(&Action::Stay { at_least: stay }), "{todo:?}");
    assert!(
        !b.step(at(4), Event::Granted(fence(9))).contains(&Action::Stay { at_least: stay }),
        "for one term"
    );
}

/// Anyone with access to the store can write a letter; only who holds the lease has it to give.
#[test]
fn only_the_holder_s_proposal_counts_where_it_is_known_who_that_is() {
    let claim = Claim {
        name: lease(),
        replica: replica("holder"),
        attempt: AttemptId::from_bytes([1; 16]),
        fence: fence(7),
    };
    let state = LeaseState::Held { claim, remaining: MS, held_for: MS, crash_witness: false };
    let mut b = successor();
    b.step(
        at(0),
        Event::Sighted(LeaseRecord { counter: Some(fence(7)), state, ..LeaseRecord::unknown(lease()) }),
    );
    assert!(heard(&mut b, 1, 1, 7, PROPOSE).is_empty(), "of a stranger");
    let letter = letter(2, 7, PROPOSE);
    assert!(warms_up(&b.step(at(2), Event::Letter { from: replica("holder"), letter })));
}
