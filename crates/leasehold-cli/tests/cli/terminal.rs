//! The wrapper at a terminal, with and without a shell above it.

use crate::{
    launch::{eventually, runs, state, wrapping},
    pty::Pty,
};
use rustix::process::Pid;
use std::process::Command;

/// A command line for a shell, quoted.
fn line(command: &Command) -> String {
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"));
    let words: Vec<_> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect();
    words.join(" ")
}

fn shell(options: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(options);
    shell
}

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// Prints its process id between brackets, then reads a line.
const ASKS: &str = "echo \"[$$]\"; read word; echo \"read <$word>\"";

fn bracketed(pty: &mut Pty) -> Pid {
    pty.expect("[");
    pid(&pty.expect("]"))
}

#[test]
fn the_command_reads_from_the_terminal() {
    for options in [&[][..], &["--on-request"]] {
        let mut pty = Pty::start(&wrapping(options, ASKS));
        bracketed(&mut pty);
        pty.press("hello\n");
        pty.expect("read <hello>");
        assert_eq!(pty.session().wait().unwrap().code(), Some(0), "{options:?}");
    }
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    for options in [&[][..], &["--on-request"]] {
        let script =
            "n=0; trap 'n=$((n+1)); echo int $n' INT; trap 'echo total $n; exit 9' USR1; echo \"[$$]\"
                      while :; do sleep 0.02; done";
        let mut pty = Pty::start(&wrapping(options, script));
        let command = bracketed(&mut pty);
        pty.press("\x03");
        pty.expect("int 1");
        rustix::process::kill_process(command, rustix::process::Signal::USR1).unwrap();
        pty.expect("total 1");
        assert_eq!(pty.session().wait().unwrap().code(), Some(9), "{options:?}");
    }
}

#[test]
fn a_script_has_its_terminal_back_after_each_wrapper() {
    let script = format!(
        "{}; {}; {}; read word; echo \"script <$word>\"",
        line(&wrapping(&[], "exit 0")),
        line(&wrapping(&["--grace=50ms", "--end-after=100ms"], "trap '' TERM; while :; do sleep 0.02; done")),
        line(&crate::launch::with_args(["__child", "--", "no-such-command-anywhere"])),
    );
    let mut pty = Pty::start(&shell(&["-c", &script]));
    pty.expect("no-such-command-anywhere: No such file");
    pty.press("mine\n");
    pty.expect("script <mine>");
}

#[test]
fn ctrl_z_gives_the_shell_back_and_fg_goes_on() {
    for options in [&[][..], &["--on-request"]] {
        let mut pty = Pty::start(&shell(&["-i"]));
        pty.expect("$ ");
        pty.press(&format!("{}\n", line(&wrapping(options, ASKS))));
        // The shell echoes the line, brackets included; what follows it is the command's.
        pty.expect("read <$word>");
        let command = bracketed(&mut pty);
        let wrapper = parent(command);
        pty.press("\x1a");
        eventually("wrapper and command stop", || state(wrapper) == Some('T') && state(command) == Some('T'));
        pty.press("echo at the $((1+1))nd prompt\n");
        pty.expect("at the 2nd prompt");
        pty.press("fg\n");
        eventually("wrapper and command go on", || {
            state(wrapper) != Some('T') && state(command) != Some('T')
        });
        pty.press("later\n");
        pty.expect("read <later>");
        pty.press("echo at the $((2+1))rd prompt\n");
        pty.expect("at the 3rd prompt");
    }
}

#[test]
fn a_command_that_may_not_go_on_stays_stopped_until_it_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let lost = dir.path().join("lost");
    let script = "trap 'echo ended; exit 0' TERM; echo \"[$$]\"; while :; do echo tick >> \"$0\"; done";
    let ticks = dir.path().join("ticks");
    let mut wrapper = wrapping(&["--grace=20s", "--end-when", lost.to_str().unwrap()], script);
    wrapper.arg(&ticks);
    let mut pty = Pty::start(&shell(&["-i"]));
    pty.expect("$ ");
    pty.press(&format!("{}\n", line(&wrapper)));
    pty.expect("ticks");
    let command = bracketed(&mut pty);
    eventually("it works", || ticks.exists());
    pty.press("\x1a");
    eventually("the command stops", || state(command) == Some('T') && state(parent(command)) == Some('T'));
    std::fs::write(&lost, "").unwrap();
    let before = std::fs::read(&ticks).unwrap();
    pty.press("fg\n");
    pty.expect("ended");
    eventually("the command ends", || !runs(command));
    // It was continued by the TERM of its end only: at most the round that was under way was finished.
    let after = std::fs::read(&ticks).unwrap();
    assert!(after.len() <= before.len() + "tick\n".len(), "{} then {}", before.len(), after.len());
}

#[test]
fn without_a_shell_above_it_ctrl_z_stops_nobody_for_ever() {
    let mut pty = Pty::start(&wrapping(&[], ASKS));
    bracketed(&mut pty);
    pty.press("\x1a");
    pty.press("hello\n");
    pty.expect("read <hello>");
}

#[test]
fn the_modes_of_the_terminal_are_restored_after_a_kill() {
    let script = "stty -echo; echo \"[$$]\"; trap '' TERM; while :; do sleep 0.02; done";
    let wrapper = wrapping(&["--end-after=300ms", "--grace=100ms"], script);
    let mut pty = Pty::start(&shell(&["-c", &format!("{}; echo over; read end", line(&wrapper))]));
    bracketed(&mut pty);
    pty.expect("over");
    assert!(pty.echoes());
}

#[test]
fn a_pager_at_the_other_end_of_a_pipe_keeps_the_terminal() {
    // The reader stands for a pager: in the wrapper's group, and reading from the terminal.
    let wrapper = wrapping(&[], "echo page; exec sleep 100");
    let script =
        format!("{} | {{ read page; read key </dev/tty; echo \"$page <$key>\"; kill 0; }}", line(&wrapper));
    let mut pty = Pty::start(&shell(&["-c", &script]));
    pty.press("q\n");
    pty.expect("page <q>");
}

fn parent(of: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", of.as_raw_pid())).unwrap();
    pid(stat[stat.rfind(')').unwrap() + 1..].split_ascii_whitespace().nth(1).unwrap())
}
