//! The wrapper is killed (B122, B125).

use crate::launch::{GUARD, Running, Store, eventually, runs};
use rustix::process::{Signal, kill_process};

#[test]
fn the_command_dies_with_a_wrapper_that_was_killed() {
    let store = Store::new();
    let mut running =
        Running::start(store.run(&[], "trap '' TERM HUP INT; echo $$; while :; do sleep 0.02; done"));
    let command = running.pid_line();
    running.signal(Signal::KILL);
    running.wait();
    eventually("the command dies", || !runs(command));
}

/// The parent-death signal reaches the command alone; the guard sees to the rest.
#[test]
fn what_the_command_has_started_dies_with_a_wrapper_that_was_killed() {
    let store = Store::new();
    let script = "trap '' TERM HUP INT; sh -c 'echo $$; while :; do sleep 0.02; done'; true";
    for stopped in [false, true] {
        let mut running = Running::start(store.run(&["--ttl=300ms"], script));
        let started = running.pid_line();
        if stopped {
            running.signal(Signal::STOP);
        }
        running.signal(Signal::KILL);
        running.wait();
        eventually("it dies", || !runs(started));
    }
}

#[test]
fn the_guard_leaves_with_its_wrapper_and_takes_no_orders_from_others() {
    let store = Store::new();
    let mut command = store.run(&[], &format!("{GUARD}; echo ready; read end; exit 6"));
    command.stdin(std::process::Stdio::piped());
    let mut running = Running::start(command);
    let guard = running.pid_line();
    running.expect_line("ready");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(guard, signal).unwrap();
    }
    assert!(runs(guard));
    running.close_stdin();
    assert_eq!(running.code(), 6);
    eventually("the guard leaves", || !runs(guard));
}

#[test]
fn the_command_dies_with_a_wrapper_that_was_killed_while_stopped() {
    let store = Store::new();
    let mut running = Running::start(store.run(&[], "echo $$; exec sleep 100"));
    let command = running.pid_line();
    running.signal(Signal::STOP);
    running.signal(Signal::KILL);
    running.wait();
    eventually("the command dies", || !runs(command));
}

/// B122, B125: free as soon as the operating system knows, whatever the ttl, and the next term is told.
#[test]
fn with_a_witness_the_next_replica_need_not_wait_for_the_ttl() {
    let store = Store::new();
    let mut first = Running::start(store.run(&["--ttl=1h", "--crash-witness"], "echo up; exec sleep 100"));
    first.expect_line("up");
    first.signal(Signal::KILL);
    first.wait();
    let mut second = Running::start(store.run(&[], "echo $LEASEHOLD_PREDECESSOR $LEASEHOLD_FENCE"));
    second.expect_line("crashed 2");
    assert_eq!(second.code(), 0);
}

#[test]
fn without_a_witness_the_lease_is_free_after_the_ttl() {
    let store = Store::new();
    let mut first = Running::start(store.run(&["--ttl=500ms"], "echo up; exec sleep 100"));
    first.expect_line("up");
    first.signal(Signal::KILL);
    first.wait();
    let mut second = Running::start(store.run(&[], "echo $LEASEHOLD_PREDECESSOR $LEASEHOLD_FENCE"));
    second.expect_line("expired 2");
    assert_eq!(second.code(), 0);
}
