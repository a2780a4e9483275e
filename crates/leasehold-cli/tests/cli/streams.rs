//! Streams that are pipes, closed, or read by nobody.

use crate::launch::{Running, leasehold, output, with_args, wrapping};
use std::{
    io::Write,
    process::{Command, Stdio},
};

#[test]
fn stdin_and_stdout_are_the_commands_own() {
    let mut command = wrapping(&["--log=trace"], "cat; echo err >&2");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo").unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.stdout, b"one\ntwo");
    assert!(String::from_utf8_lossy(&out.stderr).contains("err\n"));
}

#[test]
fn a_wrapper_with_nothing_to_say_says_nothing() {
    assert_eq!(output(&mut wrapping(&[], "exit 3")), (3, String::new(), String::new()));
}

#[test]
fn closed_streams_are_replaced_by_the_null_device() {
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    let inner = format!(
        "for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done > {seen}.tmp; mv {seen}.tmp {seen}; echo lost; exit 4",
        seen = seen.display()
    );
    // The redirection inside of the command replaces its fd 1 only for the loop, so that 1 is not what is looked at.
    let wrapper = wrapping(&[], &inner);
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" <&- >&- 2>&-"]).arg(wrapper.get_program()).args(wrapper.get_args());
    assert_eq!(shell.status().unwrap().code(), Some(4));
    let seen = std::fs::read_to_string(seen).unwrap();
    let seen: Vec<_> = seen.lines().collect();
    assert_eq!((seen[0], seen[2]), ("/dev/null", "/dev/null"));
}

#[test]
fn a_stderr_that_nobody_reads_harms_nobody() {
    for (mut command, code) in [
        (wrapping(&["--log=trace"], "exit 6"), 6),
        (with_args(["__child", "--", "no-such-command-anywhere"]), 127),
        (with_args(["no-such-verb"]), 64),
    ] {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn a_stdout_that_nobody_reads_ends_a_text_quietly() {
    for verb in [&["man"][..], &["completions", "bash"], &["--help"], &["run", "--help"]] {
        let mut child = leasehold().args(verb).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        assert_eq!((out.status.code(), &*out.stderr), (Some(0), &b""[..]), "{verb:?}");
    }
}

#[test]
fn a_file_that_was_passed_down_reaches_the_command() {
    let wrapper = wrapping(&[], "echo through >&7");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec \"$0\" \"$@\" 7>&1 >/dev/null"])
        .arg(wrapper.get_program())
        .args(wrapper.get_args());
    let mut running = Running::start(shell);
    running.expect_line("through");
    assert_eq!(running.code(), 0);
    assert_eq!(running.stderr(), "");
}
