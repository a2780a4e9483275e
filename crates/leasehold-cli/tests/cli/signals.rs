//! Signals to the wrapper reach all of the command's group (B122).

use crate::launch::{Running, Store, eventually, in_shell, runs, state};
use rustix::process::Signal;
use std::process::Command;

/// Two shells of one group, an outer and an inner one, say which signal they got.
fn two_shells(store: &Store, signal: &str) -> Command {
    let script = format!(
        "trap 'echo outer {signal}' {signal}
         sh -c 'trap \"echo inner {signal}; exit 0\" {signal}; echo ready; while :; do sleep 0.02; done'
         exit 7"
    );
    store.run(&[], &script)
}

#[test]
fn every_concerned_signal_reaches_the_whole_group() {
    let store = Store::new();
    for (name, signal) in [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("WINCH", Signal::WINCH),
    ] {
        let mut running = Running::start(two_shells(&store, name));
        running.expect_line("ready");
        running.signal(signal);
        running.expect_line(&format!("inner {name}"));
        running.expect_line(&format!("outer {name}"));
        assert_eq!(running.code(), 7, "{name}");
    }
}

#[test]
fn a_command_that_a_passed_signal_ends_is_reported_so() {
    let store = Store::new();
    let mut running = Running::start(store.run(&[], "echo ready; exec sleep 100"));
    running.expect_line("ready");
    running.signal(Signal::TERM);
    assert_eq!(running.code(), 128 + 15);
}

#[test]
fn the_second_int_is_kill() {
    let store = Store::new();
    let script = "trap 'echo int' INT; echo ready; while :; do sleep 0.02; done";
    let mut running = Running::start(store.run(&[], script));
    running.expect_line("ready");
    running.signal(Signal::INT);
    running.expect_line("int");
    running.signal(Signal::INT);
    assert_eq!(running.code(), 128 + 9);
}

#[test]
fn a_term_is_answered_in_the_commands_own_time() {
    let store = Store::new();
    // The grace is for ends that we decide; here somebody else asked, and the command may be as slow as it likes.
    let script = "trap 'sleep 0.3; echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let mut running = Running::start(store.run(&["--grace", "10ms"], script));
    running.expect_line("ready");
    running.signal(Signal::TERM);
    running.expect_line("cleaned");
    assert_eq!(running.code(), 0);
}

/// What `nohup` asks for must hold through the wrapper, for itself and for the command.
#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let store = Store::new();
    let inner = "grep SigIgn /proc/self/status; echo $$; exec sleep 100";
    let mut running = Running::start(in_shell("trap '' HUP; exec \"$0\" \"$@\"", &store.run(&[], inner)));
    let mask = running.line();
    let mask = u64::from_str_radix(mask.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert_eq!(mask & 1, 1, "HUP is signal 1: {mask:b}");
    let command = running.pid_line();
    running.signal(Signal::HUP);
    // Signals of one kind of sender are handled in order: when USR1 has arrived, HUP would have.
    running.signal(Signal::USR1);
    assert_eq!(running.code(), 128 + 10);
    assert!(!runs(command));
}

#[test]
fn a_stopped_command_can_be_asked_to_end_and_to_go_on() {
    let store = Store::new();
    let script = "trap 'echo usr1' USR1; trap 'echo term; exit 3' TERM; echo $$; kill -STOP $$; echo awake
                  while :; do sleep 0.02; done";
    let mut running = Running::start(store.run(&[], script));
    let command = running.pid_line();
    eventually("the command stops", || state(command) == Some('T'));
    running.signal(Signal::CONT);
    running.expect_line("awake");
    running.signal(Signal::TERM);
    running.expect_line("term");
    assert_eq!(running.code(), 3);
}
