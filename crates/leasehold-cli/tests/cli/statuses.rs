//! Exit statuses of the command, as they pass through (B124).

use crate::launch::{leasehold, output, wrapping};

#[test]
fn the_status_of_the_command_is_passed_on() {
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
        assert_eq!(output(&mut wrapping(&[], script)).0, code, "{script}");
    }
}

#[test]
fn a_command_that_cannot_be_started_has_the_status_that_shells_give_it() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "exit 0").unwrap();
    for (command, code) in [
        ("no-such-command-anywhere", 127),
        ("/no/such/path", 127),
        (script.to_str().unwrap(), 126),
        ("/", 126),
    ] {
        let (status, stdout, stderr) = output(leasehold().args(["__child", "--", command]));
        assert_eq!(status, code, "{command}");
        assert_eq!(stdout, "");
        assert!(stderr.starts_with("leasehold: ") && stderr.contains(command), "{stderr}");
    }
}
