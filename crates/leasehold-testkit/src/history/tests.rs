//! A sound history passes; each planted violation is caught, by the invariant that it breaks.

use super::{Event, Journal, Step, Traffic, What, i10_progress, overlap, safety};
use std::{io::Write, time::Duration};

const MS: u64 = 1_000_000;

fn event(at: u64, replica: &str, fence: u64, what: What) -> Event {
    Event { at: at * MS, lease: "feed".into(), replica: replica.into(), fence, what }
}

fn wrote(at: u64, replica: &str, fence: u64, seq: u64, accepted: bool) -> Event {
    event(at, replica, fence, What::Wrote { resource: "file".into(), seq, accepted })
}

/// One term: granted at `at` for 1,000 ms, trusted for 900, at work for 100, and what comes then.
fn term(at: u64, replica: &str, fence: u64, seq: u64, inherited: Option<u64>) -> Vec<Event> {
    vec![
        event(at, replica, fence, What::Held { until: (at + 1000) * MS, by: Step::Grant }),
        event(at + 5, replica, fence, What::Granted { sent: (at - 5) * MS, inherited }),
        event(at + 5, replica, fence, What::Trusted { until: (at + 895) * MS }),
        event(at + 5, replica, fence, What::WorkerBegan),
        wrote(at + 60, replica, fence, seq, true),
        event(at + 100, replica, fence, What::Worked { from: (at + 10) * MS }),
    ]
}

/// `a` releases with a note; `b` inherits it and is lost; `c` takes over.
fn sound() -> Vec<Event> {
    let mut history = vec![event(1, "a", 0, What::Wanted), event(1, "b", 0, What::Wanted)];
    history.extend(term(10, "a", 1, 1, None));
    history.push(event(150, "a", 1, What::WorkerEnded));
    history.push(event(150, "a", 1, What::RenewerEnded));
    history.push(event(151, "a", 1, What::Releasing { note: true }));
    history.push(event(155, "a", 1, What::Vacated));
    history.extend(term(200, "b", 3, 2, Some(1)));
    history.push(event(1095, "b", 3, What::Lost));
    history.push(event(1095, "b", 3, What::WorkerEnded));
    history.push(event(1096, "b", 3, What::RenewerEnded));
    history.push(event(1100, "b", 0, What::Healed));
    history.extend(term(1250, "c", 4, 3, None));
    history.push(wrote(1300, "b", 3, 4, false));
    history
}

/// Which invariants a sound history breaks once `plant` has been at it.
fn caught(plant: impl FnOnce(&mut Vec<Event>)) -> Vec<&'static str> {
    let mut history = sound();
    plant(&mut history);
    history.sort_by_key(|event| event.at);
    let mut names: Vec<_> = safety(&history).iter().map(|violation| violation.invariant).collect();
    names.dedup();
    names
}

#[test]
fn a_sound_history_passes() {
    assert_eq!(safety(&sound()), []);
    assert_eq!(caught(|_| {}), [""; 0]);
}

#[test]
fn i1_catches_a_stale_write_that_was_accepted() {
    assert_eq!(caught(|h| h.push(wrote(1350, "b", 3, 5, true))), ["I1"]);
    // The resource's own order decides, not the time at which its decision was logged.
    assert_eq!(caught(|h| h.push(wrote(1240, "b", 3, 9, true))), ["I1"]);
}

#[test]
fn i2_catches_a_fence_that_does_not_increase() {
    let again = |fence: u64| {
        move |h: &mut Vec<Event>| {
            h.push(event(3000, "d", fence, What::Held { until: 4000 * MS, by: Step::Grant }));
            h.push(event(3002, "d", fence, What::Granted { sent: 2990 * MS, inherited: None }));
        }
    };
    assert_eq!(caught(again(4)), ["I2"]);
    assert_eq!(caught(again(2)), ["I2"]);
    assert_eq!(caught(again(9)), [""; 0]);
    // Without the store's account the replicas' own suffices.
    let told = |h: &mut Vec<Event>| {
        h.retain(|event| !matches!(event.what, What::Held { .. } | What::Vacated));
        h.push(event(3002, "d", 2, What::Granted { sent: 2990 * MS, inherited: None }));
    };
    assert!(caught(told).contains(&"I2"));
}

#[test]
fn i3_catches_two_claims_that_live_at_once() {
    let second =
        |h: &mut Vec<Event>| h.push(event(1900, "d", 5, What::Held { until: 2500 * MS, by: Step::Grant }));
    assert_eq!(caught(second), ["I3"]);
    // A renewal made the first one live longer than its grant said.
    let renewed = |h: &mut Vec<Event>| {
        h.push(event(2000, "c", 4, What::Held { until: 3000 * MS, by: Step::Renewal }));
        h.push(event(2500, "d", 5, What::Held { until: 3500 * MS, by: Step::Grant }));
    };
    assert_eq!(caught(renewed), ["I3"]);
}

#[test]
fn i4_catches_work_past_trust_and_trust_past_the_claim() {
    let late = event(1120, "b", 3, What::Worked { from: 1090 * MS });
    assert_eq!(caught(|h| h.push(late.clone())), ["I4"]);
    // A process that was stopped meanwhile could not know.
    let paused = |h: &mut Vec<Event>| {
        h.extend([event(1092, "b", 0, What::Paused), event(1119, "b", 0, What::Resumed), late.clone()]);
    };
    assert_eq!(caught(paused), [""; 0]);
    // A deadline counted from the answer.
    let long = |h: &mut Vec<Event>| h.push(event(1300, "c", 4, What::Trusted { until: 2251 * MS }));
    assert_eq!(caught(long), ["I4"]);
}

#[test]
fn i5_catches_a_worker_that_outlives_its_renewer() {
    let orphan = |h: &mut Vec<Event>| {
        h.push(event(1400, "c", 4, What::RenewerEnded));
        h.push(event(1500, "c", 4, What::Worked { from: 1410 * MS }));
    };
    assert_eq!(caught(orphan), ["I5"]);
}

#[test]
fn i6_catches_a_release_over_a_running_worker() {
    assert_eq!(caught(|h| h.push(event(1400, "c", 4, What::Releasing { note: false }))), ["I6"]);
    let after = |h: &mut Vec<Event>| {
        h.push(event(1400, "c", 4, What::WorkerEnded));
        h.push(event(1401, "c", 4, What::Releasing { note: false }));
        h.push(event(1450, "c", 4, What::Worked { from: 1402 * MS }));
    };
    assert_eq!(caught(after), ["I6"]);
}

#[test]
fn i7_catches_whoever_takes_an_unknown_outcome_for_a_success() {
    let believer = |h: &mut Vec<Event>| h.retain(|e| !matches!(e.what, What::Granted { .. }) || e.fence != 4);
    assert_eq!(caught(believer), ["I7"]);
    let ghost = |h: &mut Vec<Event>| {
        h.push(event(2300, "d", 5, What::Held { until: 2600 * MS, by: Step::Grant }));
        h.push(event(2500, "d", 5, What::Held { until: 2900 * MS, by: Step::Repeat }));
    };
    assert_eq!(caught(ghost), [""; 0], "a claim that nobody knows of may live for its ttl");
    let kept = |h: &mut Vec<Event>| {
        ghost(h);
        h.push(event(2700, "d", 5, What::Held { until: 3300 * MS, by: Step::Renewal }));
    };
    assert_eq!(caught(kept), ["I7"]);
}

#[test]
fn i9_catches_a_note_given_twice_or_past_a_term() {
    let inherit = |fence: u64, from: u64| {
        move |h: &mut Vec<Event>| {
            let term =
                h.iter_mut().find(|e| e.fence == fence && matches!(e.what, What::Granted { .. })).unwrap();
            let What::Granted { sent, .. } = term.what else { unreachable!() };
            term.what = What::Granted { sent, inherited: Some(from) };
        }
    };
    assert_eq!(caught(inherit(4, 1)), ["I9"]);
    assert_eq!(caught(inherit(4, 3)), ["I9"], "nobody left that one");
}

#[test]
fn an_overlap_is_caught_unless_a_pause_forced_it() {
    let early = |h: &mut Vec<Event>| {
        h.push(event(290, "c", 4, What::Worked { from: 250 * MS }));
    };
    assert!(caught(early).contains(&"overlap"));
    let mut history = sound();
    history.push(event(1092, "b", 0, What::Paused));
    history.push(event(1400, "b", 0, What::Resumed));
    history.push(event(1400, "b", 3, What::Worked { from: 1090 * MS }));
    assert_eq!(overlap::overlaps(&history).len(), 1);
    assert_eq!(safety(&history), []);
}

#[test]
fn i10_catches_a_vacancy_that_is_not_filled() {
    let bound = Duration::from_millis(500);
    let check = |history: &[Event], until: u64| i10_progress::check(history, bound, until * MS);
    assert_eq!(check(&sound(), 2700), []);
    let violations = check(&sound(), 3000);
    assert_eq!(violations.len(), 1, "nobody came after the last expiry: {violations:?}");
    assert_eq!(violations[0].invariant, "I10");
    // Nobody wanted it: then it may stay vacant.
    let mut unwanted = sound();
    unwanted.extend([event(2300, "a", 0, What::Unwanted), event(2300, "b", 0, What::Unwanted)]);
    assert_eq!(check(&unwanted, 9000), []);
    let mut unhealed = sound();
    unhealed.retain(|event| event.what != What::Healed);
    assert_eq!(check(&unhealed, 2700).len(), 1, "a history without an end of its faults shows nothing");
}

#[test]
fn a_history_in_which_too_little_happened_fails() {
    let enough = Traffic { grants: 3, takeovers: 2, expiries: 1, handovers: 0, accepted: 3, refused: 1 };
    assert_eq!(enough.check(&sound()), Ok(enough));
    assert!(enough.check(&[]).is_err());
    for more in [
        Traffic { grants: 4, ..enough },
        Traffic { takeovers: 3, ..enough },
        Traffic { expiries: 2, ..enough },
        Traffic { handovers: 1, ..enough },
        Traffic { accepted: 4, ..enough },
        Traffic { refused: 2, ..enough },
    ] {
        assert!(more.check(&sound()).is_err(), "{more:?}");
    }
}

#[test]
fn a_journal_gives_back_what_many_wrote_and_passes_over_a_torn_last_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.jsonl");
    let (one, two) = (Journal::append(&path).unwrap(), Journal::append(&path).unwrap());
    let mut history = sound();
    for (n, event) in history.iter().enumerate().rev() {
        if n % 2 == 0 { one.write(event) } else { two.write(event) }.unwrap();
    }
    let read = Journal::read(&path).unwrap();
    assert_eq!(read.len(), history.len());
    let key = |event: &Event| (event.at, format!("{event:?}"));
    history.sort_by_key(key);
    let mut sorted = read;
    sorted.sort_by_key(key);
    assert_eq!(sorted, history);

    // A writer that was killed at its last line, and then a file that is damaged for good.
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"at\":12").unwrap();
    assert_eq!(Journal::read(&path).unwrap().len(), history.len());
    file.write_all(b"\n").unwrap();
    let error = Journal::read(&path).unwrap_err();
    assert!(error.to_string().contains(&format!("line {}", history.len() + 1)), "{error}");
}
