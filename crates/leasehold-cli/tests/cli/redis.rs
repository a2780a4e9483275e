//! The program on a Redis server.

use crate::launch::{Running, leasehold, output};
use leasehold_testkit::redis::{Redis, RedisServer};
use rustix::process::Signal;
use std::process::Command;
use tokio::runtime::Runtime;

/// A server, and what keeps it.
struct Host {
    server: RedisServer,
    _runtime: Runtime,
}

impl Host {
    fn new(redis: Redis) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(redis.start()).unwrap();
        Self { server, _runtime: runtime }
    }

    fn run(&self, args: &[&str]) -> Command {
        let mut command = leasehold();
        command.env("LEASEHOLD_STORE", self.server.url()).args(args);
        command
    }
}

#[test]
fn a_killed_wrapper_is_followed_at_once_by_one_that_knows_of_the_crash() {
    let host = Host::new(Redis::new());
    let script = "echo \"$LEASEHOLD_FENCE $LEASEHOLD_PREDECESSOR\"; exec sleep 100";
    let start = |id: &str| {
        let replica = format!("--replica={id}");
        let words = ["elect", "job", "--ttl=60s", "--crash-witness", &replica, "--", "sh", "-c", script];
        Running::start(host.run(&words))
    };
    let first = start("a");
    first.expect_line("1 none");
    let mut second = start("b");
    // The ttl is longer than any test waits.
    first.signal(Signal::KILL);
    second.expect_line("2 crashed");
    second.signal(Signal::TERM);
    assert_eq!(second.code(), 0);
}

#[test]
fn run_status_release_and_fence_check_work_as_on_any_store() {
    let host = Host::new(Redis::new());
    let mut run = host.run(&["run", "job", "--", "sh", "-c"]);
    let inside = format!(
        "'{0}' fence check ledger $LEASEHOLD_FENCE -- echo written; '{0}' status --json",
        env!("CARGO_BIN_EXE_leasehold")
    );
    let (code, out, err) = output(run.arg(inside));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("written") && out.contains("held"), "{out}");
    let again = host.run(&["run", "job", "--", "true"]).status().unwrap();
    assert!(again.success());
    let mut late = host.run(&["fence", "check", "ledger", "1", "--lease", "job", "--", "echo", "late"]);
    let (code, out, err) = output(&mut late);
    assert!(code == 0 && out.contains("late"), "the mark is 1 still: {code} {out} {err}");
}

/// What endangers leases is told to those who hold some, and by `doctor`, once.
#[test]
fn a_server_that_forgets_is_told_by_those_who_hold_leases_and_by_doctor_once() {
    let host = Host::new(Redis::new());
    let (code, out, err) = output(&mut host.run(&["doctor"]));
    assert!(code == 0 && out.contains("many hosts"), "{out}");
    assert_eq!((out.matches("no-persistence").count(), &*err), (1, ""), "{out}");
    let (code, out, err) = output(&mut host.run(&["run", "job", "--", "sh", "-c", "echo $LEASEHOLD_FENCE"]));
    assert!(code == 0 && out == "1\n" && err.contains("no-persistence"), "{code} {out} {err}");
    for question in [&["fence", "check", "ledger", "1", "--lease", "job"][..], &["status"]] {
        let (code, _, err) = output(&mut host.run(question));
        assert_eq!((code, &*err), (0, ""), "{question:?}");
    }
}

#[test]
fn a_password_is_in_no_argument_and_in_no_output() {
    let host = Host::new(Redis::new().password("canary"));
    let mut command = leasehold();
    command.args(["run", "job", "--store", &host.server.url(), "--"]);
    command.env("RUST_LOG", "trace").args(["sh", "-c", "tr '\\0' ' ' </proc/$PPID/cmdline; echo"]);
    let (code, out, err) = output(&mut command);
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains("canary") && !err.contains("canary"), "{out}{err}");
    host.server.cli(&["CONFIG", "SET", "requirepass", "other"]);
    let (code, out, err) = output(&mut host.run(&["run", "job", "--", "true"]));
    assert!(code != 0 && err.contains("denied access"), "{code} {err}");
    assert!(!out.contains("canary") && !err.contains("canary"), "{out}{err}");
}
