//! The wrapper is killed (B122, B125).

use crate::launch::{Running, eventually, runs, wrapping};
use rustix::process::Signal;

#[test]
fn the_command_dies_with_a_wrapper_that_was_killed() {
    let mut running =
        Running::start(wrapping(&[], "trap '' TERM HUP INT; echo $$; while :; do sleep 0.02; done"));
    let command = running.pid_line();
    running.signal(Signal::KILL);
    running.wait();
    eventually("the command dies", || !runs(command));
}

#[test]
fn the_command_dies_with_a_wrapper_that_was_killed_while_stopped() {
    let mut running = Running::start(wrapping(&[], "echo $$; exec sleep 100"));
    let command = running.pid_line();
    running.signal(Signal::STOP);
    running.signal(Signal::KILL);
    running.wait();
    eventually("the command dies", || !runs(command));
}
