//! Command lines that are refused, and those that only tell.

use crate::launch::{output, with_args};

fn refused(args: &[&str]) -> String {
    let (code, stdout, stderr) = output(&mut with_args(args));
    assert_eq!(code, 64, "{args:?}: {stderr}");
    assert_eq!(stdout, "", "{args:?}");
    stderr
}

#[test]
fn whatever_is_wrong_with_the_command_line_is_status_64() {
    let long = "x".repeat(201);
    for args in [
        &[][..],
        &["frob"],
        &["run"],
        &["run", "n"],
        &["run", "n", "true"],
        &["run", "n", "--"],
        &["run", "n", "--nope", "--", "true"],
        &["run", "n", "--try", "--wait=1s", "--", "true"],
        &["run", "n", "--conflict-exit-code=256", "--", "true"],
        &["run", "n", "--lost-exit-code=x", "--", "true"],
        &["run", "n", "--priority=high", "--", "true"],
        &["run", "", "--", "true"],
        &["run", "a\nb", "--", "true"],
        &["run", &long, "--", "true"],
        &["handoff"],
        &["handoff", "n", "--within=0s"],
        &["handoff", "n", "--to="],
        &["release", "n"],
        &["release", "n", "--force"],
        &["release", "n", "--reason=why"],
        &["fence"],
        &["fence", "check", "r", "1"],
        &["fence", "check", "r", "0", "--lease=n"],
        &["fence", "check", "r", "-1", "--lease=n"],
        &["fence", "check", "r", "9007199254740992", "--lease=n"],
        &["doctor", "--for=0s"],
        &["status", "--log=loud"],
        &["status", "--replica="],
        &["completions", "tcl"],
        &["man", "frob"],
    ] {
        assert!(!refused(args).is_empty(), "{args:?}");
    }
}

/// B61: each bad duration is refused before anything is done, and the message names the bound.
#[test]
fn durations_that_cannot_be_meant_are_refused_by_name() {
    for (option, text, names) in [
        ("--ttl", "0s", "50ms"),
        ("--ttl", "0", "50ms"),
        ("--ttl", "10", "10s"),
        ("--ttl", "-1s", "negative"),
        ("--ttl", "1ms", "50ms"),
        ("--ttl", "24h1ms", "24 h"),
        ("--ttl", "1e9", "10s, 5m"),
        ("--ttl", "", "empty"),
        ("--ttl", "99999999999999999999s", "too large"),
        ("--wait", "0s", "zero"),
        ("--wait", "-5s", "negative"),
        ("--wait", "300y", "8784 h"),
        ("--grace", "0s", "zero"),
        ("--grace", "two", "expected number"),
    ] {
        for verb in ["run", "elect"] {
            let told = refused(&[verb, "n", option, text, "--", "true"]);
            assert!(told.contains(option) && told.contains(names), "{option} {text}: {told}");
        }
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for args in [&["--help"][..], &["--version"], &["run", "--help"], &["fence", "check", "--help"], &["-h"]]
    {
        let (code, stdout, stderr) = output(&mut with_args(args));
        assert_eq!((code, &*stderr), (0, ""), "{args:?}");
        assert!(!stdout.is_empty());
    }
}

#[test]
fn the_help_of_a_verb_lists_its_exit_statuses() {
    for (args, codes) in [
        (&["run"][..], &["64", "69", "70", "75", "76", "126", "127", "128+n"][..]),
        (&["elect"], &["0", "64", "69", "70", "75", "76", "126", "127"]),
        (&["fence", "check"], &["64", "69", "70", "77"]),
        (&["status"], &["64", "69", "70"]),
    ] {
        let help = output(with_args(args).arg("--help")).1;
        let (_, statuses) = help.split_once("Exit status:").expect("a list of statuses");
        for code in codes {
            assert!(statuses.contains(code), "{args:?} {code}: {statuses}");
        }
    }
}

#[test]
fn completions_and_manual_pages_name_every_verb() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = output(&mut with_args(["completions", shell])).1;
        for word in ["elect", "crash-witness"] {
            assert!(script.contains(word), "{shell} {word}");
        }
    }
    let page = output(&mut with_args(["man"])).1;
    assert!(
        page.starts_with(".ie") && page.contains(".TH leasehold 1") && page.contains("leasehold\\-elect(1)")
    );
    assert!(output(&mut with_args(["man", "run"])).1.contains("crash\\-witness"));
}

#[test]
fn a_password_is_shown_neither_in_help_nor_in_complaints() {
    let url = "redis://user:hunter2@host/0";
    for args in
        [&["--help"][..], &["run", "--help"], &["run"], &["--nope"], &[url], &["--store", url, "frob"]]
    {
        let (_, stdout, stderr) = output(with_args(args).env("LEASEHOLD_STORE", url));
        assert!(!(stdout + &stderr).contains("hunter2"), "{args:?}");
    }
}
