//! Exit statuses of the command, as they pass through (B124).

use crate::launch::{JOB, Running, Store, output};

#[test]
fn the_status_of_the_command_is_passed_on() {
    let store = Store::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 2", 2),
        ("exit 64", 64),
        ("exit 75", 75),
        ("exit 126", 126),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -15 $$", 143),
        ("kill -11 $$", 139),
        ("kill -2 $$", 130),
    ] {
        assert_eq!(output(&mut store.run(&[], script)).0, code, "{script}");
    }
}

#[test]
fn a_command_that_cannot_be_started_has_the_status_that_shells_give_it() {
    let store = Store::new();
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "exit 0").unwrap();
    for (command, code) in [
        ("no-such-command-anywhere", 127),
        ("/no/such/path", 127),
        (script.to_str().unwrap(), 126),
        ("/", 126),
    ] {
        let (status, stdout, stderr) = output(&mut store.leasehold(["run", JOB, "--", command]));
        assert_eq!(status, code, "{command}");
        assert_eq!(stdout, "");
        assert!(stderr.starts_with("leasehold: ") && stderr.contains(command), "{stderr}");
    }
}

#[test]
fn a_lease_that_another_replica_holds_is_status_75_or_what_was_asked_for() {
    let store = Store::new();
    let holder = Running::start(store.run(&[], "echo held; exec sleep 100"));
    holder.expect_line("held");
    for (options, code) in [
        (&["--try"][..], 75),
        (&["--wait=200ms"], 75),
        (&["--try", "--conflict-exit-code=0"], 0),
        (&["--wait=200ms", "--conflict-exit-code=9"], 9),
    ] {
        for verb in ["run", "elect"] {
            let mut command = store.leasehold([verb, JOB]);
            command.args(options).args(["--", "sh", "-c", "echo must not run"]);
            let (status, stdout, _) = output(&mut command);
            assert_eq!((status, &*stdout), (code, ""), "{verb} {options:?}");
        }
    }
}

/// The usual answer for all but one host is no reason for a letter from cron.
#[test]
fn a_try_that_fails_says_nothing_and_a_wait_that_fails_says_who_held_it() {
    let store = Store::new();
    let holder = Running::start(store.run(&["--replica=first"], "echo held; exec sleep 100"));
    holder.expect_line("held");
    assert_eq!(output(&mut store.run(&["--try"], "true")).2, "");
    let said = output(&mut store.run(&["--wait=100ms"], "true")).2;
    assert!(said.contains("first") && said.contains("fence 1"), "{said}");
}

#[test]
fn a_store_that_cannot_be_used_is_status_69_and_one_that_cannot_be_meant_64() {
    let store = Store::new();
    std::fs::write(store.path("foreign.db"), "not a database, and long enough to be looked at".repeat(99))
        .unwrap();
    let foreign = format!("sqlite:{}", store.path("foreign.db").display());
    let directory = format!("sqlite:{}", store.path("").display());
    for (url, code) in [
        (&*foreign, 69),
        (&directory, 69),
        ("sqlite:/proc/nowhere/leases.db", 69),
        ("nosuch://host/0", 64),
        ("sqlite::memory:", 64),
        ("nonsense", 64),
    ] {
        for args in [&["run", JOB, "--", "true"][..], &["elect", JOB, "--", "true"], &["status"], &["watch"]]
        {
            let (status, stdout, stderr) = output(store.leasehold(args).env("LEASEHOLD_STORE", url));
            assert_eq!((status, &*stdout), (code, ""), "{args:?} {url}: {stderr}");
            assert!(stderr.starts_with("leasehold: "), "{stderr}");
        }
    }
}

#[test]
fn durations_that_do_not_go_together_are_status_64() {
    let store = Store::new();
    let (status, _, stderr) = output(&mut store.run(&["--ttl=1s", "--grace=900ms"], "true"));
    assert_eq!(status, 64);
    assert!(stderr.contains("900ms") && stderr.contains("1s"), "{stderr}");
}
