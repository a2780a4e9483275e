//! The program on a PostgreSQL server.

use crate::launch::{Running, leasehold, output};
use leasehold_testkit::postgres::{Postgres, PostgresServer};
use rustix::process::Signal;
use std::process::Command;
use tokio::runtime::Runtime;

/// A server, and what keeps it.
struct Host {
    server: PostgresServer,
    _runtime: Runtime,
}

impl Host {
    fn new(postgres: Postgres) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(postgres.start()).unwrap();
        Self { server, _runtime: runtime }
    }

    /// With the layout made, as an operator does it first.
    fn ready(postgres: Postgres) -> Self {
        let host = Self::new(postgres);
        let (code, out, err) = output(&mut host.run(&["doctor", "--migrate"]));
        assert_eq!(code, 0, "{out}{err}");
        host
    }

    fn run(&self, args: &[&str]) -> Command {
        let mut command = leasehold();
        command.env("LEASEHOLD_STORE", self.server.url()).args(args);
        command
    }
}

#[test]
fn a_killed_wrapper_is_followed_at_once_by_one_that_knows_of_the_crash() {
    let host = Host::ready(Postgres::new());
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
    let host = Host::ready(Postgres::new());
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
    let (code, out, err) = output(&mut host.run(&["doctor"]));
    assert!(code == 0 && out.contains("many hosts"), "{code} {out} {err}");
}

/// The first start on a database where nobody has made the layout: what to do is said, and doing it twice is no harm.
#[test]
fn a_database_without_the_layout_is_refused_with_what_to_do() {
    let host = Host::new(Postgres::new());
    let (code, out, err) = output(&mut host.run(&["run", "job", "--", "echo", "worked"]));
    assert!(code != 0 && !out.contains("worked"), "{code} {out}");
    assert!(err.contains("doctor --migrate"), "{err}");
    for _ in 0..2 {
        let (code, out, err) = output(&mut host.run(&["doctor", "--migrate"]));
        assert_eq!(code, 0, "{out}{err}");
    }
    let (code, out, err) = output(&mut host.run(&["run", "job", "--", "echo", "worked"]));
    assert!(code == 0 && out.contains("worked"), "{code} {out} {err}");
}

/// What an administrator runs by hand does as much as `--migrate`, and a role needs no more than what is printed for it.
#[test]
fn the_printed_statements_lay_out_a_database_for_a_role_that_may_nothing_else() {
    let host = Host::new(Postgres::new());
    let (code, text, err) = output(&mut host.run(&["doctor", "--print-sql", "--role", "app"]));
    assert_eq!(code, 0, "{err}");
    host.server.sql("CREATE ROLE app LOGIN");
    host.server.sql(&format!("BEGIN; {text}; COMMIT"));
    let address = format!("postgres://app@{}/postgres", host.server.addr());
    let work = |args: &[&str]| output(host.run(args).env("LEASEHOLD_STORE", &address));
    let (code, out, err) = work(&["run", "job", "--", "echo", "worked"]);
    assert!(code == 0 && out.contains("worked"), "{code} {out} {err}");
    let (code, out, err) = work(&["doctor"]);
    assert!(code == 0 && out.contains("for writes to this database"), "{code} {out}{err}");
    host.server
        .try_sql("SET ROLE app; DELETE FROM leasehold.lease")
        .expect_err("a role has no right to a table");
    // It is the layout that `--migrate` makes: done already.
    let (code, out, err) = output(&mut host.run(&["doctor", "--migrate"]));
    assert!(code == 0 && out.contains("layout version"), "{out}{err}");
}

#[test]
fn a_password_is_in_no_argument_and_in_no_output() {
    let host = Host::ready(Postgres::new().password("canary"));
    let mut command = leasehold();
    command.args(["run", "job", "--store", &host.server.url(), "--"]);
    command.env("RUST_LOG", "trace").args(["sh", "-c", "tr '\\0' ' ' </proc/$PPID/cmdline; echo"]);
    let (code, out, err) = output(&mut command);
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains("canary") && !err.contains("canary"), "{out}{err}");
    host.server.sql("ALTER ROLE postgres PASSWORD 'other'");
    let (code, out, err) = output(&mut host.run(&["run", "job", "--", "true"]));
    assert!(code != 0 && err.contains("denied access"), "{code} {err}");
    assert!(!out.contains("canary") && !err.contains("canary"), "{out}{err}");
}
