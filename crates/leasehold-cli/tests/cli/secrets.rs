//! A store's password is shown nowhere.

use crate::launch::{JOB, Running, Store, output};

/// The arguments of a process can be read by every user of the host.
#[test]
fn a_password_leaves_the_process_title_and_reaches_the_command() {
    let store = Store::new();
    let dir = store.path("a:hunter2@b");
    std::fs::create_dir(&dir).unwrap();
    let url = format!("sqlite:///{}/leases.db", dir.display());
    // Any store will do whose URL looks as if it held a password.
    let script = "tr '\\0' ' ' < /proc/$PPID/cmdline; echo; echo $LEASEHOLD_STORE";
    for place in [&["run", "--store", &url, JOB][..], &["--store", &url, "run", JOB]] {
        let mut running = Running::start({
            let mut command = store.leasehold(place);
            command.args(["--", "sh", "-c", script]);
            command
        });
        let title = running.line();
        assert!(title.contains(" run ") && title.contains("LEASEHOLD_STORE"), "{title}");
        assert!(!title.split(" -- ").next().unwrap().contains("hunter2"), "{title}");
        running.expect_line(&url);
        assert_eq!(running.code(), 0);
    }
}

#[test]
fn no_error_of_a_store_shows_its_password() {
    let store = Store::new();
    for (url, expected) in [
        ("redis://user:hunter2@127.0.0.1:1/0", 69),
        ("redis+sentinel://user:hunter2@127.0.0.1:1/m?sentinel_password=hunter2", 69),
        ("redis://user:hunter2@127.0.0.1:1/hunter2", 64),
        ("nosuch://user:hunter2@host/db?password=hunter2", 64),
    ] {
        for args in [&["run", JOB, "--", "true"][..], &["status", "--log=trace"], &["doctor"]] {
            let (code, stdout, stderr) = output(store.leasehold(args).env("LEASEHOLD_STORE", url));
            assert_eq!(code, expected, "{args:?} {url}: {stderr}");
            assert!(!(stdout + &stderr).contains("hunter2"), "{args:?} {url}");
        }
    }
}
