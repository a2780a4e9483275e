//! The incumbent, step by step.

use super::common::{MS, ask, at, fence, id, lease, letter, plan, replica};
use leasehold_core::handoff::{
    Ending, Incumbent, Kept, Message, Otherwise, Plan, To, Vacated,
    incumbent::{Action, Answer, Event, Refusal},
};
use std::time::Duration;

fn incumbent() -> Incumbent {
    Incumbent::new(replica("a"), lease(), fence(7), plan())
}

/// One that was asked at moment zero, with this roster.
fn asked(to: To, within: Duration, otherwise: Otherwise, roster: &[&str]) -> (Incumbent, Vec<Action>) {
    let mut incumbent = incumbent();
    let mut todo = incumbent.step(at(0), Event::Asked { id: id(1), ask: ask(to, within, otherwise) });
    if todo.contains(&Action::ReadRoster) {
        let roster = roster.iter().map(|name| replica(name)).collect();
        todo.extend(incumbent.step(at(0), Event::Roster(Some(roster))));
    }
    (incumbent, todo)
}

fn heard(incumbent: &mut Incumbent, ms: u64, from: &str, message: Message) -> Vec<Action> {
    incumbent.step(at(ms), Event::Letter { from: replica(from), letter: letter(1, 7, message) })
}

/// Whom these actions propose to.
fn proposed(todo: &[Action]) -> Vec<String> {
    let sent = todo.iter().filter_map(|action| match action {
        Action::Send { to, letter } if matches!(letter.message, Message::Propose { .. }) => {
            Some(to.to_string())
        }
        _ => None,
    });
    sent.collect()
}

fn ending(todo: &[Action]) -> Option<&Ending> {
    todo.iter().find_map(|action| match action {
        Action::End { ending, .. } => Some(ending),
        _ => None,
    })
}

fn releases(todo: &[Action]) -> bool {
    todo.iter().any(|action| matches!(action, Action::Release { .. }))
}

#[test]
fn by_rank_and_never_itself() {
    let line = ["d", "a", "b", "c", "b", "d"];
    let (mut incumbent, todo) = asked(To::Anyone, MS * 2000, Otherwise::LeadOn, &line);
    assert_eq!(proposed(&todo), ["d"]);
    let why = "cold".into();
    assert_eq!(proposed(&heard(&mut incumbent, 1, "d", Message::Decline { why })), ["b"]);
    assert_eq!(proposed(&incumbent.step(at(101), Event::Wake)), ["c"], "silence is an answer");
    assert_eq!(proposed(&incumbent.step(at(201), Event::Wake)), ["c"], "the last is asked again");
    assert_eq!(
        ending(&incumbent.step(at(1900), Event::Wake)),
        Some(&Ending::Aborted(Kept::NobodyReady)),
        "the time to choose is over"
    );
    assert!(!incumbent.is_over());
}

#[test]
fn what_cannot_be_is_said_at_once_and_the_incumbent_leads_on() {
    let named = |name| To::Replica(replica(name));
    for (to, within, roster, why) in [
        (named("a"), MS * 500, &["a", "b"][..], Kept::ToItself),
        (named("z"), MS * 500, &["a", "b"], Kept::NotACandidate),
        (To::Anyone, MS * 500, &["a"], Kept::NoCandidates),
        (To::Anyone, Duration::ZERO, &["a", "b"], Kept::NoTime),
    ] {
        let (mut incumbent, todo) = asked(to.clone(), within, Otherwise::LeadOn, roster);
        assert_eq!(ending(&todo), Some(&Ending::Aborted(why)));
        let again = Event::Asked { id: id(2), ask: ask(To::Anyone, MS * 500, Otherwise::LeadOn) };
        assert!(incumbent.step(at(1), again).contains(&Action::ReadRoster), "it can be asked again");
        // Whoever must leave leaves without a successor.
        let (incumbent, todo) = asked(to, within, Otherwise::Leave, roster);
        assert_eq!(ending(&todo), None);
        assert_eq!(todo.contains(&Action::KillWorker), within.is_zero());
        assert!(incumbent.handoff().is_some());
    }
}

#[test]
fn the_release_waits_for_the_join_and_for_nothing_else() {
    let (mut incumbent, _) = asked(To::Anyone, MS * 1000, Otherwise::LeadOn, &["b"]);
    let todo = heard(&mut incumbent, 5, "b", Message::Ready);
    assert!(todo.contains(&Action::Quiesce { within: MS * 100 }), "{todo:?}");
    let todo = incumbent.step(at(105), Event::Wake);
    assert!(todo.contains(&Action::KillWorker) && !releases(&todo));
    let todo = incumbent.step(at(150), Event::Joined);
    let end = todo.iter().position(|action| *action == Action::EndRenewals);
    let release = todo.iter().position(|a| *a == Action::Release { heir: Some((replica("b"), MS * 100)) });
    assert!(end.is_some() && end < release, "{todo:?}");
    assert!(!releases(&incumbent.step(at(151), Event::Joined)), "told twice, released once");
    incumbent.step(at(151), Event::Parted(Answer::Released));
    let todo = heard(&mut incumbent, 152, "b", Message::Assumed { fence: fence(8) });
    assert_eq!(ending(&todo), Some(&Ending::Done { to: replica("b"), fence: fence(8) }));
    assert!(incumbent.is_over());
}

#[test]
fn a_worker_that_never_ends_is_never_released_under() {
    let (mut incumbent, _) = asked(To::Anyone, Duration::ZERO, Otherwise::Leave, &["b"]);
    let todo = incumbent.step(at(100), Event::Wake);
    assert_eq!(ending(&todo), Some(&Ending::Released(Vacated::Overrun)));
    assert!(!releases(&todo) && !releases(&incumbent.step(at(101), Event::Joined)));
}

fn committing() -> Incumbent {
    let (mut incumbent, _) = asked(To::Anyone, MS * 1000, Otherwise::LeadOn, &["b"]);
    heard(&mut incumbent, 5, "b", Message::Ready);
    incumbent.step(at(10), Event::Joined);
    incumbent
}

#[test]
fn an_unknown_release_is_asked_again_and_never_assumed() {
    let mut incumbent = committing();
    let todo = incumbent.step(at(10), Event::Parted(Answer::Unknown));
    assert_eq!(todo, [Action::WakeAt(at(20))]);
    let todo = heard(&mut incumbent, 12, "b", Message::Assumed { fence: fence(8) });
    assert!(releases(&todo) && ending(&todo).is_none(), "a letter is a reason to ask, no answer: {todo:?}");
    let taken = Some((replica("b"), fence(8)));
    let todo = incumbent.step(at(13), Event::Parted(Answer::NotHolder(taken)));
    assert_eq!(ending(&todo), Some(&Ending::Done { to: replica("b"), fence: fence(8) }));

    let mut incumbent = committing();
    incumbent.step(at(10), Event::Parted(Answer::Unknown));
    assert!(releases(&incumbent.step(at(20), Event::Wake)));
    let todo = incumbent.step(at(110), Event::Wake);
    assert_eq!(ending(&todo), Some(&Ending::Released(Vacated::Unsettled)));

    let todo = committing().step(at(11), Event::Parted(Answer::NotHolder(None)));
    assert_eq!(
        ending(&todo),
        Some(&Ending::Released(Vacated::Lost)),
        "there was no doubt: it was lost before"
    );
}

#[test]
fn a_lost_assumed_is_made_good_by_the_record() {
    let mut incumbent = committing();
    incumbent.step(at(10), Event::Parted(Answer::Released));
    incumbent.step(at(11), Event::Sighted(Some((replica("a"), fence(7)))));
    assert!(incumbent.step(at(110), Event::Wake).contains(&Action::Look));
    let todo = incumbent.step(at(111), Event::Sighted(Some((replica("c"), fence(8)))));
    assert_eq!(ending(&todo), Some(&Ending::Released(Vacated::TakenByAnother)));
}

#[test]
fn letters_that_are_stale_or_strange_change_nothing() {
    let (mut incumbent, _) = asked(To::Anyone, MS * 1000, Otherwise::LeadOn, &["b", "c"]);
    let before = incumbent.clone();
    for (from, letter) in [
        ("b", letter(2, 7, Message::Ready)),
        ("b", letter(1, 6, Message::Ready)),
        ("c", letter(1, 7, Message::Ready)),
        ("b", letter(1, 7, Message::Assumed { fence: fence(8) })),
        ("b", letter(1, 7, Message::Yours)),
    ] {
        incumbent.step(at(1), Event::Letter { from: replica(from), letter });
        assert_eq!(incumbent, before);
    }
}

#[test]
fn a_successor_that_takes_its_word_back_sends_the_worker_on() {
    let (mut incumbent, _) = asked(To::Anyone, MS * 1000, Otherwise::LeadOn, &["b"]);
    heard(&mut incumbent, 5, "b", Message::Ready);
    let todo = heard(&mut incumbent, 6, "b", Message::Decline { why: "leaving".into() });
    assert!(todo.contains(&Action::Resume));
    let todo = incumbent.step(at(7), Event::Resumed);
    assert_eq!(ending(&todo), Some(&Ending::Aborted(Kept::Withdrawn)));
}

#[test]
fn a_second_ask_joins_or_is_refused() {
    let (mut incumbent, _) = asked(To::Replica(replica("b")), MS * 1000, Otherwise::LeadOn, &["b", "c"]);
    let c = ask(To::Replica(replica("c")), MS * 1000, Otherwise::LeadOn);
    let todo = incumbent.step(at(1), Event::Asked { id: id(2), ask: c });
    assert!(todo.contains(&Action::Refuse { id: id(2), why: Refusal::Busy(id(1)) }));
    let leave = ask(To::Anyone, Duration::ZERO, Otherwise::Leave);
    let todo = incumbent.step(at(2), Event::Asked { id: id(3), ask: leave });
    assert!(todo.contains(&Action::Joins { id: id(3), with: id(1) }));
    assert!(todo.contains(&Action::KillWorker), "no time is left: {todo:?}");
}

#[test]
fn no_plan_and_no_time_is_endless_or_nothing() {
    for each in [Duration::ZERO, Duration::MAX] {
        let plan = Plan { answer: each, quiesce: each, join: each, commit: each, retry: each, window: each };
        let mut incumbent = Incumbent::new(replica("a"), lease(), fence(7), plan);
        let longest = Plan::new(plan).longest(Duration::MAX);
        assert!(longest <= Duration::from_hours(5));
        let ask = ask(To::Anyone, Duration::MAX, Otherwise::Leave);
        incumbent.step(at(0), Event::Asked { id: id(1), ask });
        incumbent.step(at(0), Event::Roster(None));
        for _ in 0..3 {
            incumbent.step(at(0).after(longest), Event::Wake);
        }
        incumbent.step(at(0).after(longest * 2), Event::Wake);
        assert!(incumbent.is_over());
    }
}
