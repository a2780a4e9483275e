//! The examples, run as people run them: real processes, signals and sockets, on a store of their own.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

/// The program of an example, as cargo built it beside this test.
fn example(name: &str) -> Command {
    let mut dir: PathBuf = std::env::current_exe().expect("a running test has a path");
    dir.pop();
    if dir.ends_with("deps") {
        dir.pop();
    }
    Command::new(dir.join("examples").join(name))
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_fan_out_survives_a_killed_and_a_frozen_leader_and_says_so_in_one_json_object() {
    // I1, I2, I3 and I10 over a kill and a pause.
    let output = example("fanout").args(["--seconds", "6", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["ok"], true);
    let terms = result["terms"].as_array().unwrap();
    let ended: Vec<&str> = terms.iter().filter_map(|term| term["ended_by"].as_str()).collect();
    assert!(ended.contains(&"SIGKILL") && ended.contains(&"SIGSTOP"), "{result}");
    assert!(terms.iter().any(|term| term["predecessor"] == "crashed"), "the witness tells: {result}");
    let refused = &result["refused"][0];
    assert!(refused["presented"].as_u64() < refused["highest"].as_u64(), "{result}");
    assert!(result["events"].as_u64().unwrap() > 100);
}

/// I6, I8: leadership passes from one to the next, again and again, and no event is lost, doubled or out of order.
#[test]
fn forty_handoffs_in_a_row_lose_no_event() {
    let output = example("fanout").args(["--seconds", "6", "--handoffs", "40", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["ok"], &result["handoffs"]["done"]), (&true.into(), &40.into()), "{result}");
    let handed = |term: &&serde_json::Value| term["predecessor"] == "handed-off";
    assert_eq!(result["terms"].as_array().unwrap().iter().filter(handed).count(), 40, "{result}");
}

#[test]
fn a_paused_holder_is_refused_with_token_1_against_2_and_its_late_release_hurts_nobody() {
    let output = example("paused_holder").output().unwrap();
    let told = text(&output);
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("A  writes with token 1: refused, current is 2").count(), 2, "{told}");
    assert_eq!(told.matches("the store says: B holds the lease, token 2").count(), 2, "{told}");
}

#[test]
fn a_late_refresh_of_a_shared_cache_is_refused_and_no_reader_goes_back() {
    let output = example("shared_cache").args(["--seconds", "1", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["ok"], true);
    assert!(result["refused"]["presented"].as_u64() < result["refused"]["highest"].as_u64(), "{result}");
}

/// I1 over runs: the mark of a run before stays, also where the store has lost the lease since.
#[test]
fn a_shared_cache_goes_on_where_the_run_before_ended_though_the_lease_was_lost() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(leasehold_testkit::redis::Redis::new().start()).unwrap();
    let mark = || server.cli(&["GET", "{prices}:fence"]).text().parse::<u64>().unwrap();
    let mut highest = 0;
    for lost in [false, false, true] {
        if lost {
            server.cli(&["DEL", "leasehold:{shared-cache}:fence"]);
        }
        let output = example("shared_cache")
            .args(["--seconds", "1", "--json", "--store", &server.url()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let first = result["fences"][0].as_u64().unwrap();
        assert!(first > highest, "{first} after {highest}: {result}");
        assert!(mark() > highest);
        highest = mark();
    }
}

/// On a store that processes of many hosts share.
fn the_fan_out_runs_on(store: &str) {
    let mut fanout = example("fanout");
    let output = fanout.args(["--seconds", "6", "--json", "--store", store]).output().expect("it is there");
    assert!(output.status.success(), "{}", text(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!(result["ok"], true);
    assert!(result["events"].as_u64() > Some(100), "{result}");
}

#[test]
fn the_fan_out_runs_on_redis() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(leasehold_testkit::redis::Redis::new().start()).unwrap();
    the_fan_out_runs_on(&server.url());
}

#[test]
fn the_fan_out_runs_on_postgresql() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(leasehold_testkit::postgres::Postgres::new().start()).unwrap();
    the_fan_out_runs_on(&format!("{}?migrate=yes", server.url()));
}

#[test]
fn a_store_that_cannot_be_shared_is_refused_before_anything_is_started() {
    for name in ["fanout", "paused_holder"] {
        let output = example(name).args(["--store", "memory:"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("lives in one process"), "{}", text(&output));
    }
}
