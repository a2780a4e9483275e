//! `handoff`, and what a leader does when it is asked to go.

use crate::launch::{JOB, Running, Store, eventually, output};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A command that says under which fence it leads, after whom, and ends a little after it is asked to.
const LEADS: &str =
    "trap 'echo bye; exit 0' TERM; echo \"leads $LEASEHOLD_FENCE after $LEASEHOLD_PREDECESSOR\"
                     while :; do sleep 0.02; done";

fn replica(store: &Store, id: &str, options: &[&str]) -> Running {
    Running::start(store.elect(&[&[&*format!("--replica={id}"), "--grace=20s"], options].concat(), LEADS))
}

/// One leads, and two waits in the roster.
fn two(store: &Store) -> [Running; 2] {
    let one = replica(store, "one", &[]);
    one.expect_line("leads 1 after none");
    let two = replica(store, "two", &[]);
    in_line(store, &["two"]);
    [one, two]
}

fn in_line(store: &Store, replicas: &[&str]) {
    let waiting: Vec<_> = replicas.iter().map(|id| json!({ "replica": id, "priority": 0 })).collect();
    eventually("all are in line", || store.status()["candidates"] == json!(waiting));
}

fn news(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_leader_hands_over_when_it_is_asked_and_each_step_is_told() {
    let store = Store::new();
    let [one, two] = two(&store);
    let (status, told, said) = output(&mut store.leasehold(["handoff", JOB, "--json", "--reason=a deploy"]));
    assert_eq!((status, said.as_str()), (0, ""), "{told}");
    let told = news(&told);
    let steps: Vec<_> = told.iter().map(|news| news["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["asked", "proposed", "ready", "quiescing", "joined", "released", "done"]);
    let done = told.last().unwrap();
    assert_eq!((&done["to"], &done["fence"]), (&json!("two"), &json!(2)));
    assert!(done["gap_us"].is_u64(), "{done}");
    one.expect_line("bye");
    two.expect_line("leads 2 after handed-off");
    // And back, by name, in words; the first is in line again.
    in_line(&store, &["one"]);
    let (status, told, _) = output(&mut store.leasehold(["handoff", JOB, "--to=one"]));
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("two was asked to hand over job") && told.contains("one is ready"), "{told}");
    assert!(told.contains("one leads under fence 3; nobody led for "), "{told}");
    one.expect_line("leads 3 after handed-off");
}

/// The command's state goes with the leadership: what it writes once it is asked to end is there for the one who follows.
#[test]
fn a_command_hands_its_note_to_the_one_who_takes_over() {
    const KEEPS_STATE: &str =
        "trap 'echo \"state of $LEASEHOLD_REPLICA\" > \"$LEASEHOLD_NOTE_OUT\"; exit 0' TERM
        echo \"$LEASEHOLD_FENCE has: $(cat \"${LEASEHOLD_NOTE_IN-/dev/null}\")\"
        while :; do sleep 0.02; done";
    let store = Store::new();
    let start =
        |id: &str| Running::start(store.elect(&[&*format!("--replica={id}"), "--grace=20s"], KEEPS_STATE));
    let one = start("one");
    one.expect_line("1 has: ");
    let two = start("two");
    in_line(&store, &["two"]);
    let (status, told, _) = output(&mut store.leasehold(["handoff", JOB]));
    assert_eq!(status, 0, "{told}");
    two.expect_line("2 has: state of one");
    in_line(&store, &["one"]);
    let (status, told, _) = output(&mut store.leasehold(["handoff", JOB]));
    assert_eq!(status, 0, "{told}");
    one.expect_line("3 has: state of two");
}

#[test]
fn what_cannot_be_handed_over_is_said_and_the_incumbent_leads_on() {
    let store = Store::new();
    let handoff = |args: &[&str]| output(&mut store.leasehold([&["handoff", JOB], args].concat()));
    let (status, told, said) = handoff(&[]);
    assert_eq!((status, told.as_str()), (79, ""));
    assert!(said.contains("nobody holds it; there is nothing to hand over"), "{said}");
    let one = replica(&store, "one", &[]);
    one.expect_line("leads 1 after none");
    for (args, why) in [
        (&[][..], "there is no other candidate"),
        (&["--to=one"], "leads already"),
        (&["--to=nobody"], "no candidate for this lease"),
    ] {
        let (status, told, said) = handoff(args);
        assert_eq!((status, said.as_str()), (78, ""), "{args:?}: {told}");
        assert!(told.contains("one still leads: ") && told.contains(why), "{args:?}: {told}");
    }
    assert_eq!(store.status()["fence"], 1);
    // Work that runs once is nobody's to pass on.
    let once = Running::start(store.leasehold(["run", "once", "--replica=three", "--", "sleep", "100"]));
    let holds = || output(&mut store.leasehold(["status", "once", "--json"])).1.contains("three");
    eventually("it holds", holds);
    let (status, told, _) = output(&mut store.leasehold(["handoff", "once"]));
    assert_eq!(status, 78, "{told}");
    assert!(told.contains("work that runs once is not handed over"), "{told}");
    drop(once);
}

/// The record decides when nobody answers: here, a leader that is stopped.
#[test]
fn a_leader_that_does_not_answer_is_not_waited_for_longer_than_it_could_take() {
    let store = Store::new();
    let [one, _two] = two(&store);
    one.signal(Signal::STOP);
    let (status, _, said) = output(&mut store.leasehold(["handoff", JOB, "--within=1s"]));
    assert_eq!(status, 78, "{said}");
    assert!(said.contains("one leads under fence 1, as the record says; it did not answer"), "{said}");
    one.signal(Signal::CONT);
}

#[test]
fn a_leader_that_is_told_to_end_hands_over_first() {
    let store = Store::new();
    let [mut one, two] = two(&store);
    let three = replica(&store, "three", &[]);
    in_line(&store, &["two", "three"]);
    one.signal(Signal::TERM);
    one.expect_line("bye");
    assert_eq!(one.code(), 0);
    two.expect_line("leads 2 after handed-off");
    let mut two = two;
    in_line(&store, &["three"]);
    // All that are left at once: nobody takes over from anybody in vain, and all end in order.
    let mut three = three;
    three.signal(Signal::TERM);
    two.signal(Signal::TERM);
    assert_eq!((two.code(), three.code()), (0, 0));
    assert_eq!(store.status()["state"], "vacant");
}

#[test]
fn events_tell_the_steps_on_both_sides() {
    let store = Store::new();
    let (told_one, told_two) = (store.path("one.jsonl"), store.path("two.jsonl"));
    let events = |path: &std::path::Path| format!("--events={}", path.display());
    let one = replica(&store, "one", &[&events(&told_one)]);
    one.expect_line("leads 1 after none");
    let two = replica(&store, "two", &[&events(&told_two)]);
    in_line(&store, &["two"]);
    assert_eq!(output(&mut store.leasehold(["handoff", JOB])).0, 0);
    two.expect_line("leads 2 after handed-off");
    let steps = |path: &std::path::Path| {
        let lines = std::fs::read_to_string(path).unwrap();
        let events = news(&lines).into_iter().filter(|event| event["event"] == "handoff");
        events
            .map(|event| (event["step"].as_str().unwrap().to_owned(), event["to"].clone()))
            .collect::<Vec<_>>()
    };
    eventually("the incumbent has told its end", || steps(&told_one).iter().any(|(step, _)| step == "done"));
    assert_eq!(steps(&told_one)[1], ("proposed".to_owned(), json!("two")));
    let two_told: Vec<_> = steps(&told_two).into_iter().map(|(step, _)| step).collect();
    assert_eq!(two_told, ["warming-up", "warmed-up", "assumed"]);
}
