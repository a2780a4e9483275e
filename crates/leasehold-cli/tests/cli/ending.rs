//! Nothing of a command's group outlives its wrapper, whatever it does (B122, I6).
//!
//! Most of these let `elect` end its command, by a TERM that it answers itself.

use crate::launch::{Running, Store, eventually, runs, state};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_command_that_ends_within_its_grace_is_not_killed() {
    let store = Store::new();
    let script = "trap 'sleep 0.2; echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let mut running = Running::start(store.elect(&["--grace=20s"], script));
    running.expect_line("ready");
    running.signal(Signal::TERM);
    running.expect_line("cleaned");
    assert_eq!(running.code(), 0);
    assert_eq!(store.status()["predecessor"]["fate"], "released");
}

#[test]
fn a_command_that_ignores_term_is_killed_after_its_grace() {
    let store = Store::new();
    let script = "trap '' TERM; echo $$; while :; do sleep 0.02; done";
    let mut running = Running::start(store.elect(&["--grace=200ms"], script));
    let command = running.pid_line();
    running.signal(Signal::TERM);
    assert_eq!(running.code(), 0);
    assert!(!runs(command));
    assert_eq!(store.status()["predecessor"]["fate"], "released");
}

#[test]
fn the_second_int_ends_the_grace() {
    let store = Store::new();
    let script = "trap '' INT; trap 'echo term' TERM; echo $$; while :; do sleep 0.02; done";
    let mut running = Running::start(store.elect(&["--grace=20s"], script));
    let command = running.pid_line();
    running.signal(Signal::INT);
    running.expect_line("term");
    running.signal(Signal::INT);
    assert_eq!(running.code(), 0);
    assert!(!runs(command));
}

#[test]
fn what_a_command_leaves_behind_ends_before_the_wrapper() {
    let store = Store::new();
    let script = "(trap '' TERM; exec sleep 100) & echo $!; exit 5";
    let mut running = Running::start(store.run(&["--grace=100ms"], script));
    let left = running.pid_line();
    assert_eq!(running.code(), 5);
    assert!(!runs(left));
}

#[test]
fn an_orphan_of_an_orphan_is_ended_and_reaped() {
    let store = Store::new();
    // The shell in the middle ends at once: its child is ours, the subreaper's.
    let script = "sh -c 'sleep 100 & echo $!'; echo ready; exec sleep 100";
    let mut running = Running::start(store.elect(&["--grace=20s"], script));
    let orphan = running.pid_line();
    running.expect_line("ready");
    running.signal(Signal::TERM);
    assert_eq!(running.code(), 0);
    assert_eq!(state(orphan), None, "reaped, not left to somebody else");
}

#[test]
fn a_stopped_member_hears_its_term() {
    let store = Store::new();
    let script = "trap 'echo term; exit 0' TERM; echo $$; kill -STOP $$; while :; do sleep 0.02; done";
    let mut running = Running::start(store.elect(&["--grace=20s"], script));
    let command = running.pid_line();
    eventually("it stops", || state(command) == Some('T'));
    running.signal(Signal::TERM);
    running.expect_line("term");
    assert_eq!(running.code(), 0);
    assert!(!runs(command));
}

#[test]
fn a_stopped_group_that_ignores_term_is_killed() {
    let store = Store::new();
    let script = "trap '' TERM; sh -c 'kill -STOP $$' & echo $$; kill -STOP $$; while :; do sleep 0.02; done";
    let mut running = Running::start(store.elect(&["--grace=100ms"], script));
    let command = running.pid_line();
    eventually("it stops", || state(command) == Some('T'));
    running.signal(Signal::TERM);
    assert_eq!(running.code(), 0);
    assert!(!runs(command));
}

#[test]
fn a_zombie_that_its_parent_never_reaps_does_not_hold_the_wrapper() {
    let store = Store::new();
    // The subshell starts a sleep in the group and then leaves the group itself, for a program that reaps nothing.
    let script = "(sleep 100 & echo $! > \"$0\"; exec setsid sleep 100) & echo $!; read end; exit 0";
    let mut command = store.run(&["--grace=100ms"], script);
    let member = store.path("member");
    command.arg(&member).stdin(std::process::Stdio::piped());
    let mut running = Running::start(command);
    let deserter = running.pid_line();
    // As long as it is a shell it may still reap.
    eventually("it has left", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", deserter.as_raw_pid()));
        name.is_ok_and(|name| name == "sleep\n")
    });
    let member = Pid::from_raw(std::fs::read_to_string(member).unwrap().trim().parse().unwrap()).unwrap();
    running.close_stdin();
    assert_eq!(running.code(), 0);
    assert_eq!(state(member), Some('Z'), "dead, and its parent does not care");
    assert!(runs(deserter), "it left the group on purpose");
    kill_process(deserter, Signal::KILL).unwrap();
    eventually("the deserter ends", || !runs(deserter));
}

#[test]
fn waiting_for_the_lease_can_be_broken_off() {
    let store = Store::new();
    let holder = Running::start(store.run(&[], "echo held; exec sleep 100"));
    holder.expect_line("held");
    for (verb, code) in [("run", 128 + 15), ("elect", 0)] {
        let mut waiting =
            Running::start(store.leasehold([verb, "job", "--", "sh", "-c", "echo must not run"]));
        eventually("it waits", || {
            store.status()["candidates"].as_array().is_some_and(|waits| !waits.is_empty())
        });
        waiting.signal(Signal::TERM);
        assert_eq!(waiting.code(), code, "{verb}");
        assert_eq!(store.status()["candidates"], serde_json::json!([]), "nothing of it stays (I11)");
    }
}
