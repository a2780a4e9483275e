//! `status`, `watch`, `release`, `fence check`, `doctor`.

use crate::launch::{JOB, Running, Store, eventually, in_shell, output};
use rustix::process::Signal;
use serde_json::{Value, json};

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn status_shows_who_holds_what_and_who_waits() {
    let store = Store::new();
    assert_eq!(output(&mut store.leasehold(["status"])), (0, String::new(), String::new()));
    let holder = Running::start(store.run(&["--replica=one"], "echo held; exec sleep 100"));
    holder.expect_line("held");
    let _waits = Running::start(store.run(&["--replica=two", "--priority=7"], "true"));
    eventually("two waits", || store.status()["candidates"] == json!([{ "replica": "two", "priority": 7 }]));

    let status = store.status();
    assert_eq!(
        (&status["lease"], &status["state"], &status["fence"], &status["replica"]),
        (&json!(JOB), &json!("held"), &json!(1), &json!("one"))
    );
    assert!(status["remaining_ms"].as_u64().is_some_and(|ms| (1..=60_000).contains(&ms)), "{status}");
    assert_eq!(status["predecessor"], json!({ "fate": "none" }));
    let (_, table, _) = output(&mut store.leasehold(["status"]));
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("LEASE") && lines[1].starts_with("job    held   1      one"), "{table}");

    // A name that nobody ever held is vacant, not unknown.
    let (_, other, _) = output(&mut store.leasehold(["status", "other", "--json"]));
    assert_eq!(json_lines(&other)[0]["state"], "vacant");
}

#[test]
fn odd_names_are_ordinary() {
    let store = Store::new();
    let names = ["*", "{a}b", "%2F", "a b", "'\"", "é/..", " "];
    for name in names {
        assert_eq!(output(&mut store.leasehold(["run", name, "--", "true"])).0, 0, "{name}");
    }
    let (_, all, _) = output(&mut store.leasehold(["status", "--json"]));
    let mut told: Vec<_> =
        json_lines(&all).iter().map(|row| row["lease"].as_str().unwrap().to_owned()).collect();
    told.sort_by_key(|name| names.iter().position(|known| known == name));
    assert_eq!(told, names);
}

#[test]
fn watch_tells_every_term_and_every_vacancy() {
    let store = Store::new();
    assert_eq!(output(&mut store.run(&[], "true")).0, 0);
    let mut watch = Running::start(store.leasehold(["watch", JOB, "--json"]));
    let next = |name: &str| {
        let event: Value = serde_json::from_str(&watch.line()).unwrap();
        assert_eq!((&event["event"], &event["lease"]), (&json!(name), &json!(JOB)), "{event}");
        event
    };
    // First what is, so that the reader knows that it watches.
    assert_eq!(next("vacant")["predecessor"], json!({ "fate": "released", "fence": 1 }));

    let mut one = Running::start(store.run(&["--replica=one"], "echo held; read end; exit 0"));
    one.expect_line("held");
    assert_eq!(one.code(), 0);
    let acquired = next("acquired");
    assert_eq!((&acquired["replica"], &acquired["fence"]), (&json!("one"), &json!(2)));
    assert_eq!(next("released")["fence"], 2);
    assert_eq!(next("vacant")["predecessor"], json!({ "fate": "released", "fence": 2 }));

    let two = Running::start(store.run(&["--replica=two", "--ttl=500ms"], "echo held; exec sleep 100"));
    two.expect_line("held");
    assert_eq!(next("acquired")["replica"], "two");
    drop(two);
    // Nobody releases it and nobody takes it: the watch itself sees it expire.
    let lost = next("lost");
    assert_eq!(
        (&lost["replica"], &lost["fence"], &lost["cause"]),
        (&json!("two"), &json!(3), &json!("expired"))
    );
    assert_eq!(next("vacant")["predecessor"]["fate"], "expired");

    let three = Running::start(store.run(&["--replica=three"], "echo held; exec sleep 100"));
    three.expect_line("held");
    assert_eq!(next("acquired")["predecessor"], json!({ "fate": "expired", "fence": 3 }));
    output(&mut store.leasehold(["release", JOB, "--force", "--reason=why", "--replica=ops"]));
    let forced = next("forced");
    assert_eq!(
        (&forced["by"], &forced["reason"], &forced["fence"]),
        (&json!("ops"), &json!("why"), &json!(4))
    );
    next("vacant");

    watch.signal(Signal::INT);
    assert_eq!(watch.code(), 0);
}

#[test]
fn watch_for_people_is_a_line_per_event_and_ends_with_its_reader() {
    let store = Store::new();
    let mut watch = Running::start(in_shell(
        "{ \"$0\" \"$@\"; echo ended $? >&2; } | head -1",
        &store.leasehold(["watch"]),
    ));
    let holder = Running::start(store.run(&["--replica=one"], "echo held; exec sleep 100"));
    holder.expect_line("held");
    let line = watch.line();
    assert!(line.ends_with("job  held by one (fence 1), never held before"), "{line}");
    // Nothing more happens, so only looking at the pipe can tell that nobody reads.
    assert_eq!(watch.code(), 0);
    assert_eq!(watch.stderr(), "ended 0\n");
}

#[test]
fn release_of_a_vacant_lease_is_done_already() {
    let store = Store::new();
    let (code, stdout, _) = output(&mut store.leasehold(["release", JOB, "--force", "--reason=x"]));
    assert_eq!((code, &*stdout), (0, "lease job: nobody holds it\n"));
}

/// I1, from a script's point of view.
#[test]
fn a_token_is_accepted_until_a_higher_one_was() {
    let store = Store::new();
    for _ in 0..2 {
        assert_eq!(output(&mut store.run(&[], "true")).0, 0);
    }
    let check = |token: &str, more: &[&str]| {
        output(store.leasehold(["fence", "check", "door", token, "--lease", JOB]).args(more))
    };
    assert_eq!(check("1", &[]), (0, String::new(), String::new()));
    assert_eq!(check("2", &["--", "sh", "-c", "echo in; exit 9"]), (9, "in\n".into(), String::new()));
    let (code, stdout, stderr) = check("1", &["--", "echo", "must not run"]);
    assert_eq!((code, &*stdout), (77, ""));
    assert!(stderr.contains("door") && stderr.contains('2'), "{stderr}");
    assert_eq!(check("3", &[]).0, 64, "never issued");
    assert_eq!(check("2", &["--", "no-such-command-anywhere"]).0, 127);
    assert_eq!(check("2", &["--", "sh", "-c", "kill -9 $$"]).0, 137);
}

#[test]
fn the_command_behind_a_gate_keeps_others_out_and_is_of_the_same_lease() {
    let store = Store::new();
    let script = "\"$0\" fence check door $LEASEHOLD_FENCE -- sh -c 'echo $LEASEHOLD_NAME $LEASEHOLD_FENCE; read end; echo out'";
    let mut first = store.run(&[], script);
    first.arg(env!("CARGO_BIN_EXE_leasehold")).stdin(std::process::Stdio::piped());
    let mut first = Running::start(first);
    first.expect_line("job 1");
    let log = store.path("log");
    let second = format!("echo second >> '{}'; echo second", log.display());
    let mut second = Running::start(
        store.leasehold(["fence", "check", "door", "1", "--lease", JOB, "--", "sh", "-c", &second]),
    );
    // Whoever does not want to wait is told so.
    for (how, code) in [(&["--try"][..], 75), (&["--wait=50ms", "--conflict-exit-code=9"], 9)] {
        let mut busy = store.leasehold(["fence", "check", "door", "1", "--lease", JOB]);
        let (status, stdout, stderr) = output(busy.args(how).args(["--", "echo", "must not run"]));
        assert_eq!((status, &*stdout), (code, ""), "{how:?}");
        assert!(stderr.contains("gate of resource door"), "{stderr}");
    }
    // It waits at the gate: it can be asked to end there, and has not run.
    let mut impatient =
        Running::start(store.leasehold(["fence", "check", "door", "1", "--lease", JOB, "--", "true"]));
    eventually("signals are handled", || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", impatient.pid().as_raw_pid())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 14) != 0
    });
    impatient.signal(Signal::TERM);
    assert_eq!(impatient.code(), 128 + 15);
    assert!(!log.exists());
    first.close_stdin();
    first.expect_line("out");
    second.expect_line("second");
    assert_eq!((first.code(), second.code()), (0, 0));
}

#[test]
fn doctor_measures_and_advises() {
    let store = Store::new();
    let (code, report, stderr) = output(&mut store.leasehold(["doctor", "--for=100ms", "--json"]));
    assert_eq!((code, &*stderr), (0, ""));
    let report = &json_lines(&report)[0];
    assert_eq!(report["kind"], "sqlite");
    assert!(report["samples"].as_u64().is_some_and(|samples| samples > 0));
    for measure in ["read", "write", "runtime_lag"] {
        let spread = &report[measure];
        assert!(
            spread["p50_us"].as_u64() <= spread["max_us"].as_u64() && spread["max_us"].is_u64(),
            "{report}"
        );
    }
    assert!(report["advised_ttl_ms"].as_u64().is_some_and(|ms| ms >= 500));
    let (code, words, _) = output(&mut store.leasehold(["doctor", "--for=50ms"]));
    assert!(code == 0 && words.contains("advice") && words.contains("ttl of"), "{words}");
    // It leaves nothing behind that anybody would see.
    assert_eq!(output(&mut store.leasehold(["status"])).1, "");
}
