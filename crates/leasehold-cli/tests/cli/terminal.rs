//! The wrapper at a terminal, with and without a shell above it.

use crate::{
    launch::{Running, Store, eventually, in_shell, line, program, runs, state, with_env_of},
    pty::Pty,
};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;

/// An interactive shell, in which the command line of `of` will be typed.
fn shell(of: &Command) -> Command {
    let mut shell = program("sh");
    shell.arg("-i");
    with_env_of(&mut shell, of);
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
    let store = Store::new();
    let mut pty = Pty::start(&store.run(&[], ASKS));
    bracketed(&mut pty);
    pty.press("hello\n");
    pty.expect("read <hello>");
    assert_eq!(pty.code(), Some(0));
}

#[test]
fn the_command_of_an_election_has_the_terminal_when_it_asks() {
    let store = Store::new();
    let mut pty = Pty::start(&store.elect(&[], &format!("{ASKS}; exec sleep 100")));
    bracketed(&mut pty);
    pty.press("hello\n");
    pty.expect("read <hello>");
    // From then on Ctrl-C is the command's, and means the election all the same.
    pty.press("\x03");
    assert_eq!(pty.code(), Some(0));
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let store = Store::new();
    let script = "n=0; trap 'n=$((n+1)); echo int $n' INT; trap 'echo total $n; exit 9' USR1; echo \"[$$]\"
                  while :; do sleep 0.02; done";
    let mut pty = Pty::start(&store.run(&[], script));
    let command = bracketed(&mut pty);
    pty.press("\x03");
    pty.expect("int 1");
    kill_process(command, Signal::USR1).unwrap();
    pty.expect("total 1");
    assert_eq!(pty.code(), Some(9));
}

#[test]
fn ctrl_c_ends_an_election_in_good_order() {
    let store = Store::new();
    let script =
        "trap 'echo int' INT; trap 'echo term; exit 0' TERM; echo \"[$$]\"; while :; do sleep 0.02; done";
    let mut pty = Pty::start(&store.elect(&["--grace=20s"], script));
    bracketed(&mut pty);
    pty.press("\x03");
    pty.expect("term");
    assert_eq!(pty.code(), Some(0));
}

#[test]
fn a_script_has_its_terminal_back_after_each_wrapper() {
    let store = Store::new();
    let killed = store.run(
        &["--grace=50ms", "--ttl=300ms", "--pulse-cmd=false"],
        "trap '' TERM; while :; do sleep 0.02; done",
    );
    let script = format!(
        "{}; {}; \"$0\" \"$@\"; read word; echo \"script <$word>\"",
        line(&store.run(&[], "exit 0")),
        line(&killed),
    );
    let mut pty =
        Pty::start(&in_shell(&script, &store.leasehold(["run", "n", "--", "no-such-command-anywhere"])));
    pty.expect("no-such-command-anywhere: No such file");
    pty.press("mine\n");
    pty.expect("script <mine>");
}

#[test]
fn ctrl_z_gives_the_shell_back_and_fg_goes_on() {
    let store = Store::new();
    for wrapper in [store.run(&[], ASKS), store.elect(&[], &format!("{ASKS}; kill $PPID; exec sleep 100"))] {
        let mut pty = Pty::start(&shell(&wrapper));
        pty.expect("$ ");
        pty.press(&format!("{}\n", line(&wrapper)));
        // The shell echoes the line, brackets included; what follows it is the command's.
        pty.expect("read <$word>");
        let command = bracketed(&mut pty);
        let wrapper = parent(command);
        pty.waits_for_a_key(command);
        pty.press("\x1a");
        pty.eventually("wrapper and command stop", || {
            state(wrapper) == Some('T') && state(command) == Some('T')
        });
        pty.press("echo at the $((1+1))nd prompt\n");
        pty.expect("at the 2nd prompt");
        pty.press("fg\n");
        pty.eventually("wrapper and command go on", || {
            state(wrapper) != Some('T') && state(command) != Some('T')
        });
        pty.press("later\n");
        pty.expect("read <later>");
        pty.press("echo at the $((2+1))rd prompt\n");
        pty.expect("at the 3rd prompt");
    }
}

#[test]
fn a_wrapper_that_waits_can_be_stopped_and_goes_on_waiting() {
    let store = Store::new();
    let mut holder = Running::start(store.run(&["--replica=holder"], "echo held; exec sleep 100"));
    holder.expect_line("held");
    let wrapper = store.run(&[], "echo \"[$LEASEHOLD_FENCE]\"");
    let mut pty = Pty::start(&shell(&wrapper));
    pty.expect("$ ");
    pty.press(&format!("{}\n", line(&wrapper)));
    pty.expect("waiting for lease job, which replica holder holds");
    pty.press("\x1a");
    pty.press("echo at the $((1+1))nd prompt\n");
    pty.expect("at the 2nd prompt");
    pty.press("fg\n");
    holder.signal(Signal::TERM);
    holder.wait();
    pty.expect("[2]");
}

/// While the wrapper is stopped nobody renews. When it is continued, the command must not run one step further under a
/// lease that is another's by now.
#[test]
fn a_command_whose_lease_was_lost_in_its_stop_is_not_continued() {
    let store = Store::new();
    let ticks = store.path("ticks");
    let mut wrapper = store.run(&["--ttl=500ms"], "echo \"[$$]\"; while :; do echo tick >> \"$0\"; done");
    wrapper.arg(&ticks);
    let mut pty = Pty::start(&shell(&wrapper));
    pty.expect("$ ");
    pty.press(&format!("{}\n", line(&wrapper)));
    pty.expect("ticks");
    let command = bracketed(&mut pty);
    eventually("it works", || ticks.exists());
    pty.press("\x1a");
    eventually("the command stops", || state(command) == Some('T') && state(parent(command)) == Some('T'));
    let mut next = Running::start(store.run(&[], "echo $LEASEHOLD_PREDECESSOR"));
    next.expect_line("expired");
    assert_eq!(next.code(), 0);
    let before = std::fs::read(&ticks).unwrap().len();
    pty.press("fg\n");
    eventually("the command ends", || !runs(command));
    assert_eq!(std::fs::read(&ticks).unwrap().len(), before);
    pty.expect("lease job was lost");
    pty.press("echo \"code <$?>\"\n");
    pty.expect("code <76>");
}

/// Reaches the election, not its command, which does not ask for the terminal. It is most of its time in the middle of
/// starting programs, where a shell cannot stop, nor be seen not to.
#[test]
fn ctrl_z_stops_an_election_whatever_its_command_is_at() {
    let store = Store::new();
    let go = store.path("go");
    let mut election =
        store.elect(&[], "echo \"[$$]\"; until [ -e \"$0\" ]; do /bin/true; done; echo over; exec sleep 100");
    election.arg(&go);
    let mut pty = Pty::start(&shell(&election));
    pty.expect("$ ");
    pty.press(&format!("{}\n", line(&election)));
    pty.expect("sleep 100");
    let command = bracketed(&mut pty);
    let wrapper = parent(command);
    for _ in 0..20 {
        pty.press("\x1a");
        pty.eventually("election and command stop", || {
            state(wrapper) == Some('T') && state(command) == Some('T')
        });
        pty.expect("$ ");
        pty.press("fg\n");
        pty.eventually("election and command go on", || {
            state(wrapper) != Some('T') && state(command) != Some('T')
        });
    }
    std::fs::write(&go, "").unwrap();
    pty.expect("over\r");
}

#[test]
fn without_a_shell_above_it_ctrl_z_stops_nobody_for_ever() {
    let store = Store::new();
    let mut pty = Pty::start(&store.run(&[], &format!("{ASKS}; exec sleep 100")));
    let command = bracketed(&mut pty);
    pty.waits_for_a_key(command);
    pty.press("\x1a");
    pty.expect("^Z");
    pty.press("hello\n");
    pty.expect("read <hello>");
}

#[test]
fn a_shell_in_a_session_from_outside_of_a_container_gives_no_job_control() {
    if !namespaces_can_be_made() {
        return;
    }
    let store = Store::new();
    let mut pty = Pty::start_in_a_container(&store.run(&[], &format!("{ASKS}; exec sleep 100")));
    bracketed(&mut pty);
    pty.is_waited_at();
    pty.press("\x1a");
    pty.expect("^Z");
    pty.press("hello\n");
    pty.expect("read <hello>");
}

#[test]
fn a_terminal_of_a_group_from_outside_of_a_container_is_nobody_s_to_lend() {
    if !namespaces_can_be_made() {
        return;
    }
    let store = Store::new();
    let script = "unshare $(test \"$(id -u)\" = 0 || echo -Ur) --pid --fork --kill-child --mount-proc \"$0\" \"$@\"; exit $?";
    let mut pty = Pty::start(&in_shell(script, &store.run(&[], "echo \"[$$]\"; exit 7")));
    bracketed(&mut pty);
    assert_eq!(pty.code(), Some(7));
}

/// Ctrl-Z reaches an election, not its command, which asks for the terminal later.
#[test]
fn without_a_shell_above_it_ctrl_z_stops_no_election_for_ever() {
    let store = Store::new();
    let asks_late = "echo \"[$$]\"; until [ -e \"$0\" ]; do /bin/true; done
                     read word; echo \"read <$word>\"; exec sleep 100";
    let go = store.path("go");
    let mut wrapper = store.elect(&[], asks_late);
    wrapper.arg(&go);
    let mut pty = Pty::start(&wrapper);
    bracketed(&mut pty);
    for _ in 0..20 {
        pty.press("\x1a");
        pty.expect("^Z");
    }
    std::fs::write(&go, "").unwrap();
    pty.press("hello\n");
    pty.expect("read <hello>");
}

#[test]
fn the_modes_of_the_terminal_are_restored_after_a_kill() {
    let store = Store::new();
    let script = "stty -echo; echo \"[$$]\"; trap '' TERM; while :; do sleep 0.02; done";
    let wrapper = store.run(&["--ttl=900ms", "--grace=100ms", "--pulse-cmd=false"], script);
    let mut pty = Pty::start(&in_shell("\"$0\" \"$@\"; echo over; read end", &wrapper));
    bracketed(&mut pty);
    pty.expect("over");
    assert!(pty.echoes());
}

#[test]
fn a_pager_at_the_other_end_of_a_pipe_keeps_the_terminal() {
    let store = Store::new();
    // The reader stands for a pager: in the wrapper's group, and reading from the terminal.
    let script = "\"$0\" \"$@\" | { read page; read key </dev/tty; echo \"$page <$key>\"; kill 0; }";
    let mut pty = Pty::start(&in_shell(script, &store.run(&[], "echo page; exec sleep 100")));
    pty.press("q\n");
    pty.expect("page <q>");
}

fn parent(of: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", of.as_raw_pid())).unwrap();
    pid(stat[stat.rfind(')').unwrap() + 1..].split_ascii_whitespace().nth(1).unwrap())
}

/// Machines differ in who may make a PID namespace; on one that forbids it, nobody meets what those tests are about.
fn namespaces_can_be_made() -> bool {
    let user: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    let mut unshare = program("unshare");
    unshare.args(user).args(["--pid", "--fork", "--mount-proc", "true"]);
    unshare.status().is_ok_and(|status| status.success())
}
