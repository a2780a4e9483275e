//! The wrapper is killed (B122, B125).

use crate::launch::{Running, Store, eventually, runs};
use rustix::process::Signal;

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
