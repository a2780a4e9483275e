//! The examples that play in PostgreSQL, run as people run them: real processes and signals, on a real server.

#![allow(clippy::unwrap_used, reason = "a test panics by design, in its helpers too")]

use leasehold_testkit::postgres::Postgres;
use std::{path::PathBuf, process::Command};

/// Plays an example on a server of its own, and gives what it found.
fn play(name: &str, args: &[&str]) -> serde_json::Value {
    let mut dir: PathBuf = std::env::current_exe().expect("a running test has a path");
    dir.pop();
    if dir.ends_with("deps") {
        dir.pop();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Postgres::new().start()).unwrap();
    let mut program = Command::new(dir.join("examples").join(name));
    let output = program.args(["--json", "--store", &server.url()]).args(args).output().unwrap();
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%example'";
    assert_eq!(server.sql(schemas), "0", "it leaves nothing of its own");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["ok"], true);
    assert!(result["refused"]["presented"].as_u64() < result["refused"]["highest"].as_u64(), "{result}");
    result
}

#[test]
fn no_job_of_a_queue_is_lost_with_a_killed_worker_or_done_twice_by_a_paused_one() {
    let result = play("job_queue", &["--jobs", "300", "--ttl", "500ms"]);
    assert_eq!((result["lost"].as_u64(), result["twice"].as_u64()), (Some(0), Some(0)), "{result}");
}

#[test]
fn no_customer_of_a_nightly_run_is_billed_twice_by_a_paused_replica() {
    let result = play("invoices", &["--customers", "200", "--ttl", "500ms"]);
    assert_eq!(
        (result["invoices"].as_u64(), result["customers"].as_u64()),
        (Some(200), Some(200)),
        "{result}"
    );
}
