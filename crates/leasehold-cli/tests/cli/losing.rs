//! The lease is lost, or given up, while the command runs (B121).

use crate::launch::{JOB, Running, Store, eventually, output, runs, state};
use rustix::process::Signal;

/// The store does not answer any more: TERM while there is still time, KILL before the next replica may begin.
#[test]
fn cut_off_from_the_store_the_command_ends_before_the_next_one_begins() {
    let store = Store::new();
    let log = store.path("log");
    let script = |name: &str, more: &str| {
        format!("{more} while :; do echo {name} >> '{}'; sleep 0.01; done", log.display())
    };
    let options = ["--ttl=2s", "--grace=500ms"];
    let first = script("first", "trap 'echo term' TERM; echo up;");
    let mut first = Running::start(store.run(&options, &first));
    first.expect_line("up");
    let locked = store.lock();
    let second = script("second", "echo up;");
    let second = Running::start(store.run(&options, &second));
    first.expect_line("term");
    assert_eq!(first.code(), 76);
    drop(locked);
    second.expect_line("up");
    eventually("the second works", || std::fs::read_to_string(&log).unwrap().contains("second"));
    drop(second);
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.find("second").unwrap() > log.rfind("first").unwrap(), "one after the other");
}

#[test]
fn a_command_that_obeys_its_last_call_does_not_hide_the_loss() {
    let store = Store::new();
    let script = "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done";
    let mut running =
        Running::start(store.run(&["--ttl=1s", "--grace=300ms", "--lost-exit-code=42"], script));
    running.expect_line("up");
    let _locked = store.lock();
    assert_eq!(running.code(), 42);
}

#[test]
fn a_claim_that_was_ended_from_outside_ends_the_command() {
    let store = Store::new();
    let mut running =
        Running::start(store.run(&["--ttl=300ms"], "trap '' TERM; echo $$; while :; do sleep 0.02; done"));
    let command = running.pid_line();
    let (code, stdout, _) =
        output(&mut store.leasehold(["release", JOB, "--force", "--reason=a test", "--replica=ops"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("fence 1"), "{stdout}");
    assert_eq!(running.code(), 76);
    assert!(!runs(command));
    let before = &store.status()["predecessor"];
    assert_eq!(
        (&before["fate"], &before["by"], &before["reason"]),
        (&"forced".into(), &"ops".into(), &"a test".into())
    );
}

#[test]
fn a_failing_pulse_gives_the_lease_up() {
    let store = Store::new();
    for (pulse, why) in
        [("exit 3", "status 3"), ("exec sleep 100", "did not end within"), ("kill -9 $$", "status 137")]
    {
        let script = "trap 'echo term; exit 0' TERM; echo $$; while :; do sleep 0.02; done";
        let mut running = Running::start(store.run(&["--ttl=900ms", "--pulse-cmd", pulse], script));
        let command = running.pid_line();
        running.expect_line("term");
        assert_eq!(running.code(), 76, "{pulse}");
        assert!(!runs(command));
        let said = running.stderr();
        assert!(said.contains(why), "{pulse}: {said}");
        assert_eq!(store.status()["predecessor"]["fate"], "released", "given up, not lost");
    }
}

#[test]
fn a_good_pulse_is_taken_again_and_again_under_the_same_term() {
    let store = Store::new();
    let pulses = store.path("pulses");
    let pulse = format!("echo $LEASEHOLD_FENCE >> '{}'; cat", pulses.display());
    let script = format!("while [ $(wc -l < '{}') -lt 3 ]; do sleep 0.02; done; exit 5", pulses.display());
    std::fs::write(&pulses, "").unwrap();
    let mut command = store.run(&["--ttl=300ms", "--pulse-cmd", &pulse], &script);
    // The pulse must not read what is meant for the command.
    command.stdin(std::process::Stdio::piped());
    let mut running = Running::start(command);
    assert_eq!(running.code(), 5);
    assert!(std::fs::read_to_string(&pulses).unwrap().lines().all(|line| line == "1"));
}

#[test]
fn an_election_goes_on_after_a_loss_and_after_the_command_has_ended() {
    let store = Store::new();
    let mut running = Running::start(store.elect(
        &["--ttl=300ms"],
        "echo $LEASEHOLD_FENCE $LEASEHOLD_PREDECESSOR; test $LEASEHOLD_FENCE -ne 1 && exec sleep 100",
    ));
    running.expect_line("1 none");
    running.expect_line("2 released");
    assert_eq!(output(&mut store.leasehold(["release", JOB, "--force", "--reason=test"])).0, 0);
    running.expect_line("3 forced");
    running.signal(Signal::TERM);
    assert_eq!(running.code(), 0);
    let said = running.stderr();
    assert!(said.contains("ended with status 1"), "{said}");
}

#[test]
fn an_election_whose_command_does_not_exist_is_no_endless_loop() {
    let store = Store::new();
    assert_eq!(output(&mut store.leasehold(["elect", JOB, "--", "no-such-command-anywhere"])).0, 127);
    assert_eq!(store.status()["predecessor"]["fate"], "released");
}

#[test]
fn an_election_ends_when_its_command_is_ended_by_a_signal_that_went_through_it() {
    let store = Store::new();
    let mut running = Running::start(store.elect(&[], "echo $$; exec sleep 100"));
    let command = running.pid_line();
    running.signal(Signal::HUP);
    assert_eq!(running.code(), 0);
    assert_eq!(state(command), None);
}
