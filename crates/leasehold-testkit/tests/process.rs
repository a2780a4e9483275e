//! Processes are listened to, signalled, frozen, and gone with their test.
#![cfg(unix)]

use leasehold_testkit::process::{Process, Signal, is_role};
use std::{
    io::{BufRead, Write},
    os::unix::process::ExitStatusExt,
    process::Command,
    time::Duration,
};

const WITHIN: Duration = Duration::from_secs(20);

fn sh(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

async fn until_gone(pid: u32) {
    let waiting = async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(WITHIN, waiting).await.unwrap_or_else(|_| panic!("process {pid} is still there"));
}

#[tokio::test]
async fn lines_are_waited_for_and_given_once_in_their_order() {
    let mut child =
        Process::spawn(&mut sh("echo one; echo two; echo two again; echo oops >&2; exit 7")).unwrap();
    assert_eq!(child.line("two", WITHIN).await, "two");
    assert_eq!(child.line("two", WITHIN).await, "two again");
    assert_eq!(child.error_line("oops", WITHIN).await, "oops");
    assert_eq!(child.exit(WITHIN).await.code(), Some(7));
    assert_eq!(child.printed(), ("one\ntwo\ntwo again".to_owned(), "oops".to_owned()));
}

#[tokio::test]
#[should_panic(expected = "the reason is printed here")]
async fn a_line_that_never_comes_is_a_failure_with_all_that_was_printed() {
    let mut child = Process::spawn(&mut sh("echo the reason is printed here")).unwrap();
    child.line("ready", WITHIN).await;
}

#[tokio::test]
async fn signals_reach_the_program() {
    let script =
        "trap 'echo hup' HUP; trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child = Process::spawn(&mut sh(script)).unwrap();
    child.line("ready", WITHIN).await;
    child.signal(Signal::HUP);
    child.line("hup", WITHIN).await;
    child.signal(Signal::TERM);
    assert_eq!(child.exit(WITHIN).await.code(), Some(3));
    child.signal(Signal::TERM); // gone already: nobody is hit
}

/// A child in a group of its own is frozen and killed too, as a machine would freeze and take it along.
#[tokio::test]
async fn a_pause_freezes_the_whole_family_and_a_kill_ends_it() {
    let script = "i=0; set -m; (while :; do echo child $((i=i+1)); sleep 0.005; done) & echo pid $!; wait";
    let mut child = Process::spawn(&mut sh(script)).unwrap();
    let grandchild = child.line("pid ", WITHIN).await[4..].parse().unwrap();
    child.line("child", WITHIN).await;
    child.pause();
    // Stopped, or in the kernel on the way there.
    let frozen = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.contains(") T ") || stat.contains(") D ")
    };
    let freezing = async {
        while !frozen(grandchild) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(WITHIN, freezing).await.unwrap();
    assert!(frozen(child.id()) && child.is_running());
    let printed = child.printed().0.lines().count();
    child.resume();
    child.line(&format!("child {}", printed + 5), WITHIN).await;
    child.kill();
    assert_eq!(child.exit(WITHIN).await.signal(), Some(9));
    until_gone(grandchild).await;
}

#[tokio::test]
async fn a_dropped_process_is_gone_with_all_that_it_started() {
    let mut child = Process::spawn(&mut sh("sleep 1000 & echo pid $!; wait")).unwrap();
    let grandchild: u32 = child.line("pid ", WITHIN).await[4..].parse().unwrap();
    let id = child.id();
    child.pause(); // a frozen one too
    drop(child);
    assert!(!is_alive(id));
    until_gone(grandchild).await;
}

/// Nobody is left to drop anything when the test process itself is killed.
#[tokio::test]
async fn a_process_does_not_outlive_a_killed_test_process() {
    let mut parent = Process::spawn(&mut Process::role("role_of_a_parent")).unwrap();
    let line = parent.line("started ", WITHIN).await;
    let family: Vec<u32> = line.split(' ').skip(1).map(|id| id.parse().unwrap()).collect();
    assert!(family.len() == 2 && family.iter().all(|id| is_alive(*id)));
    // The parent alone, as an out-of-memory kill would: the grandchild is in a group of its own.
    parent.signal(Signal::KILL);
    assert_eq!(parent.exit(WITHIN).await.signal(), Some(9));
    for id in family {
        until_gone(id).await;
    }
}

#[tokio::test]
#[ignore = "a role that another test runs as a process"]
async fn role_of_a_parent() {
    if !is_role("role_of_a_parent") {
        return;
    }
    // One that it started is in a group of its own, and frozen, as a server's child can be.
    let script = "set -m; sleep 1000 & child=$!; set +m; kill -s STOP $child; echo $child; sleep 1000";
    let mut child = Process::spawn(&mut sh(script)).unwrap();
    println!("started {} {}", child.id(), child.line("", WITHIN).await);
    std::io::stdout().flush().unwrap();
    // Until it is killed.
    for _ in std::io::stdin().lock().lines() {}
    std::future::pending::<()>().await;
}
