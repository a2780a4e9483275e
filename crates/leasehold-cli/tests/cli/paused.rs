//! The wrapper alone is paused, by STOP or a debugger: its guard keeps the end of trust (I1, I4).

use crate::launch::{GUARD, Running, Store, eventually, runs, state};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process, test_kill_process_group},
};

/// The wrapper sleeps through its lease. Neither its command nor what that has started is at work beside the next holder,
/// and when the wrapper wakes, it takes nothing from the holder after that.
#[test]
fn a_wrapper_that_is_paused_past_its_lease_leaves_no_work_beside_the_next_holder() {
    let store = Store::new();
    let log = store.path("log");
    let script = format!(
        "trap '' TERM; work() {{ while :; do echo first >> '{}'; sleep 0.01; done; }}; \
         work & echo $$; echo $!; work",
        log.display()
    );
    // A tenth of the ttl lies between the end of trust and the next grant: enough for a busy machine.
    let mut paused = Running::start(store.run(&["--ttl=2s"], &script));
    let group = [paused.pid_line(), paused.pid_line()];
    eventually("they work", || std::fs::read_to_string(&log).is_ok_and(|log| log.lines().count() > 2));
    paused.signal(Signal::STOP);

    let script = format!(
        "echo second >> '{}'; echo $LEASEHOLD_PREDECESSOR $LEASEHOLD_FENCE; read end; exit 0",
        log.display()
    );
    let mut next = store.run(&[], &script);
    next.stdin(std::process::Stdio::piped());
    let mut next = Running::start(next);
    next.expect_line("expired 2");
    eventually("all of the group is dead", || !group.into_iter().any(runs));
    assert_eq!(state(paused.pid()), Some('T'), "and that was not the wrapper's doing");
    let lines = std::fs::read_to_string(&log).unwrap();
    assert_eq!(
        lines.lines().last(),
        Some("second"),
        "the log is appended to: nothing came after the next holder"
    );

    next.close_stdin();
    assert_eq!(next.code(), 0);
    let holder = Running::start(store.run(&[], "echo $LEASEHOLD_FENCE; exec sleep 100"));
    holder.expect_line("3");
    paused.signal(Signal::CONT);
    assert_eq!(paused.code(), 76);
    assert_eq!(test_kill_process_group(group[0]), Err(Errno::SRCH), "reaped to the last process");
    let status = store.status();
    assert_eq!((&status["state"], &status["fence"]), (&"held".into(), &3.into()));
}

/// The guard goes by the last renewal that it was told, not by the first grant.
#[test]
fn a_renewed_lease_is_no_affair_of_the_guard() {
    let store = Store::new();
    let script = format!("guard=$({GUARD}); sleep 3.5; kill -0 $guard && exit 7");
    let mut running = Running::start(store.run(&["--ttl=1s"], &script));
    assert_eq!(running.code(), 7, "over three times its ttl, with a guard to the end");
    assert_eq!(store.status()["predecessor"]["fate"], "released");
}

#[test]
fn each_term_of_an_election_has_a_guard_that_knows_its_end() {
    let store = Store::new();
    let script = "echo $LEASEHOLD_FENCE; \
                  case $LEASEHOLD_FENCE in 1) sleep 1.5;; 2) sleep 1.5; echo $$; exec sleep 100;; *) exec sleep 100;; esac";
    let mut running = Running::start(store.elect(&["--ttl=1s"], script));
    running.expect_line("1");
    running.expect_line("2");
    let command = running.pid_line();
    running.signal(Signal::STOP);
    eventually("the second term's command dies", || !runs(command));
    assert_eq!(state(running.pid()), Some('T'));
    running.signal(Signal::CONT);
    running.expect_line("3");
    assert_eq!(state(command), None, "reaped");
    running.signal(Signal::TERM);
    assert_eq!(running.code(), 0);
}

/// B122: also if the guard is gone, or does not read, the wrapper renews and its command works.
#[test]
fn a_guard_that_does_not_listen_holds_nobody_up() {
    let store = Store::new();
    for signal in [Signal::KILL, Signal::STOP] {
        let script = format!("{GUARD}; read go; sleep 1.5; exit 6");
        let mut command = store.run(&["--ttl=1s"], &script);
        command.stdin(std::process::Stdio::piped());
        let mut running = Running::start(command);
        let guard: Pid = running.pid_line();
        kill_process(guard, signal).unwrap();
        eventually("it does not listen", || !matches!(state(guard), Some('R' | 'S')));
        running.close_stdin();
        assert_eq!(running.code(), 6);
        assert_eq!(store.status()["predecessor"]["fate"], "released");
        if signal == Signal::STOP {
            kill_process(guard, Signal::CONT).unwrap();
            eventually("it has heard that it may leave", || !runs(guard));
        }
    }
}
