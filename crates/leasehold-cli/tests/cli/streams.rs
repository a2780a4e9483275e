//! Streams that are pipes, closed, or read by nobody.

use crate::launch::{Running, Store, in_shell, output, with_args};
use std::{io::Write, process::Stdio};

#[test]
fn stdin_and_stdout_are_the_commands_own() {
    let store = Store::new();
    let mut command = store.run(&["--log=trace"], "cat; echo err >&2");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo").unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.stdout, b"one\ntwo");
    assert!(String::from_utf8_lossy(&out.stderr).contains("err\n"));
}

#[test]
fn a_wrapper_with_nothing_to_say_says_nothing() {
    let store = Store::new();
    assert_eq!(output(&mut store.run(&[], "exit 3")), (3, String::new(), String::new()));
}

#[test]
fn closed_streams_are_replaced_by_the_null_device() {
    let store = Store::new();
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    let inner = format!(
        "for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done > {seen}.tmp; mv {seen}.tmp {seen}; echo lost; exit 4",
        seen = seen.display()
    );
    // The redirection inside of the command replaces its fd 1 only for the loop, so that 1 is not what is looked at.
    let wrapper = store.run(&[], &inner);
    let mut shell = in_shell("exec \"$0\" \"$@\" <&- >&- 2>&-", &wrapper);
    assert_eq!(shell.status().unwrap().code(), Some(4));
    let seen = std::fs::read_to_string(seen).unwrap();
    let seen: Vec<_> = seen.lines().collect();
    assert_eq!((seen[0], seen[2]), ("/dev/null", "/dev/null"));
}

#[test]
fn a_stderr_that_nobody_reads_harms_nobody() {
    let store = Store::new();
    for (mut command, code) in [
        (store.run(&["--log=trace"], "exit 6"), 6),
        (store.leasehold(["run", "n", "--", "no-such-command-anywhere"]), 127),
        (with_args(["no-such-verb"]), 64),
    ] {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn a_stdout_that_nobody_reads_ends_a_text_quietly() {
    let store = Store::new();
    assert_eq!(output(&mut store.run(&[], "true")).0, 0);
    for verb in
        [&["man"][..], &["completions", "bash"], &["--help"], &["run", "--help"], &["status"], &["watch"]]
    {
        let mut child = store.leasehold(verb).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        assert_eq!((out.status.code(), &*out.stderr), (Some(0), &b""[..]), "{verb:?}");
    }
}

#[test]
fn a_file_that_was_passed_down_reaches_the_command() {
    let store = Store::new();
    let wrapper = store.run(&[], "echo through >&7");
    let shell = in_shell("exec \"$0\" \"$@\" 7>&1 >/dev/null", &wrapper);
    let mut running = Running::start(shell);
    running.expect_line("through");
    assert_eq!(running.code(), 0);
    assert_eq!(running.stderr(), "");
}

/// A write to a full pipe waits for its reader; renewals must not wait with it.
#[test]
fn a_stderr_that_nobody_empties_costs_no_lease() {
    let store = Store::new();
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while rustix::io::write(&writer, &[b'x'; 1 << 12]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let options = ["--ttl=300ms", "--log=trace", "--events=-"];
    let mut command = store.run(&options, "sleep 1");
    assert_eq!(command.stderr(writer).status().unwrap().code(), Some(0));
    drop(reader);
    assert_eq!(store.status()["predecessor"]["fate"], "released");
}
