//! `--events`: what happened, for programs.

use crate::launch::{JOB, Running, Store, output};
use rustix::process::Signal;
use serde_json::{Value, json};

fn events(store: &Store) -> Vec<Value> {
    let text = std::fs::read_to_string(store.path("events")).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

fn into(store: &Store) -> String {
    format!("--events={}", store.path("events").display())
}

#[test]
fn a_run_is_told_from_the_campaign_to_the_release() {
    let store = Store::new();
    assert_eq!(output(&mut store.run(&[&into(&store), "--replica=r"], "exit 3")).0, 3);
    let told = events(&store);
    assert_eq!(names(&told), ["campaigning", "acquired", "worker-ended", "released"]);
    for event in &told {
        assert_eq!((&event["lease"], &event["replica"]), (&json!(JOB), &json!("r")));
        let at = event["at"].as_str().unwrap();
        assert!(at.ends_with('Z') && at.len() == "2026-01-01T00:00:00.000Z".len(), "{at}");
    }
    assert_eq!(told[0].get("fence"), None);
    assert!(told[1..].iter().all(|event| event["fence"] == 1));
    assert_eq!(told[1]["predecessor"], json!({ "fate": "none" }));
    assert!(told[1]["waited_ms"].is_u64() && told[1]["trusted_ms"].as_u64().is_some_and(|ms| ms <= 60_000));
    assert_eq!((&told[2]["outcome"], &told[2]["status"]), (&json!("finished"), &json!(3)));
}

#[test]
fn a_loss_is_told_with_its_cause() {
    let store = Store::new();
    let running = Running::start(store.run(&[&into(&store), "--ttl=300ms"], "echo up; exec sleep 100"));
    running.expect_line("up");
    assert_eq!(output(&mut store.leasehold(["release", JOB, "--force", "--reason=why", &into(&store)])).0, 0);
    let mut running = running;
    assert_eq!(running.code(), 76);
    let told = events(&store);
    assert_eq!(names(&told), ["campaigning", "acquired", "forced", "lost", "worker-ended"]);
    assert_eq!((&told[2]["reason"], &told[2]["fence"]), (&json!("why"), &json!(1)));
    assert_eq!(told[3]["cause"], "not-holder");
    assert_eq!(told[4]["outcome"], "killed");
}

#[test]
fn an_election_that_ends_tells_why_its_command_was_asked_to() {
    let store = Store::new();
    let mut running = Running::start(store.elect(&[&into(&store)], "echo up; exec sleep 100"));
    running.expect_line("up");
    running.signal(Signal::TERM);
    assert_eq!(running.code(), 0);
    let told = events(&store);
    assert_eq!(names(&told), ["campaigning", "acquired", "quiescing", "worker-ended", "released"]);
    assert_eq!(told[3]["status"], 143);
}

#[test]
fn a_stale_token_is_told() {
    let store = Store::new();
    for _ in 0..2 {
        output(&mut store.run(&[], "true"));
    }
    output(&mut store.leasehold(["fence", "check", "door", "2", "--lease", JOB]));
    assert_eq!(
        output(&mut store.leasehold(["fence", "check", "door", "1", "--lease", JOB, &into(&store)])).0,
        77
    );
    let told = events(&store);
    assert_eq!(names(&told), ["stale-refused"]);
    assert_eq!(
        (&told[0]["resource"], &told[0]["presented"], &told[0]["highest"]),
        (&json!("door"), &json!(1), &json!(2))
    );
}

#[test]
fn renewals_are_told_only_to_those_who_want_everything() {
    let store = Store::new();
    let wanted = |log: &str| {
        std::fs::remove_file(store.path("events")).ok();
        output(&mut store.run(&[&into(&store), "--ttl=150ms", log], "sleep 0.4"));
        names(&events(&store)).contains(&"renewed")
    };
    assert!(!wanted("--log=info"));
    assert!(wanted("--log=debug"));
}

/// The disk of the events is not the store's: it may be full without costing a lease.
#[test]
#[cfg(target_os = "linux")]
fn events_that_cannot_be_written_cost_nothing_but_a_word_at_the_end() {
    let store = Store::new();
    let (code, stdout, stderr) = output(&mut store.run(&["--events=/dev/full"], "echo ran; exit 4"));
    assert_eq!((code, &*stdout), (4, "ran\n"));
    assert_eq!(stderr, "leasehold: 4 events could not be written\n");
}

#[test]
fn a_place_for_events_that_cannot_be_is_said_before_anything_is_done() {
    let store = Store::new();
    let (code, stdout, stderr) = output(&mut store.run(&["--events=/no/such/place"], "echo ran"));
    assert_eq!((code, &*stdout), (64, ""));
    assert!(stderr.contains("/no/such/place"), "{stderr}");
}

#[test]
fn a_dash_is_stderr() {
    let store = Store::new();
    let (_, stdout, stderr) = output(&mut store.run(&["--events=-"], "true"));
    assert_eq!(stdout, "");
    assert_eq!(stderr.lines().count(), 4, "{stderr}");
    assert!(stderr.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{stderr}");
}
