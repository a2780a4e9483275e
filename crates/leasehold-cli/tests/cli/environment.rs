//! What the command finds in its environment, and the notes that terms leave each other.

use crate::launch::{JOB, Store, output};

#[test]
fn the_command_knows_its_lease_and_nothing_of_an_outer_one() {
    let store = Store::new();
    let mut command =
        store.run(&["--replica=me"], "env | grep ^LEASEHOLD_ | grep -v NOTE_OUT | sort; echo $OTHER");
    command.env("LEASEHOLD_NAME", "outer").env("LEASEHOLD_NOTE_IN", "/outer/note").env("LEASEHOLD_SLOT", "x");
    command.env("LEASEHOLD_FENCE", "99").env("OTHER", "kept");
    let (code, stdout, stderr) = output(&mut command);
    let url = store.url();
    let expected = format!(
        "LEASEHOLD_FENCE=1\nLEASEHOLD_NAME={JOB}\nLEASEHOLD_PREDECESSOR=none\nLEASEHOLD_REPLICA=me\n\
         LEASEHOLD_STORE={url}\nkept\n"
    );
    assert_eq!((code, stdout), (0, expected), "{stderr}");
}

#[test]
fn each_term_has_a_higher_fence_and_knows_how_the_one_before_ended() {
    let store = Store::new();
    let told = || output(&mut store.run(&[], "echo $LEASEHOLD_FENCE $LEASEHOLD_PREDECESSOR")).1;
    assert_eq!(told(), "1 none\n");
    assert_eq!(told(), "2 released\n");
}

#[test]
fn the_command_starts_with_ordinary_signals() {
    let store = Store::new();
    // SIGPIPE (13) is ignored by every Rust program, SIGTTOU (22) blocked by the wrapper: neither is the command's. 32
    // and 33 are the C library's own.
    let (_, stdout, _) = output(&mut store.run(&[], "grep -E '^Sig(Blk|Ign)' /proc/self/status"));
    let masks: Vec<_> = stdout
        .lines()
        .map(|line| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap())
        .collect();
    assert_eq!(masks.len(), 2, "{stdout}");
    assert!(masks.iter().all(|mask| mask & 0x7fff_ffff == 0), "{stdout}");
}

#[test]
fn a_note_goes_to_the_very_next_term_and_to_no_other() {
    let store = Store::new();
    let script = "test -n \"$LEASEHOLD_NOTE_IN\" && cat \"$LEASEHOLD_NOTE_IN\"; printf %s \"$0\" > \"$LEASEHOLD_NOTE_OUT\"";
    let term = |note: &str| output(store.run(&[], script).arg(note)).1;
    assert_eq!(term("from the first"), "");
    assert_eq!(term("from the second"), "from the first");
    let silent = "cat \"$LEASEHOLD_NOTE_IN\"; dirname \"$LEASEHOLD_NOTE_IN\"";
    let (_, stdout, _) = output(&mut store.run(&[], silent));
    let directory = stdout.strip_prefix("from the second").unwrap().trim();
    assert!(!std::path::Path::new(directory).exists(), "{directory} goes with its term");
    let (_, stdout, _) = output(&mut store.run(&[], "echo ${LEASEHOLD_NOTE_IN-none}"));
    assert_eq!(stdout, "none\n");
}

/// The message names the size that the file has, and the lease is free for the next term, which is given nothing.
#[test]
fn a_note_that_is_too_large_is_refused_and_the_lease_is_released() {
    let store = Store::new();
    let leave = |bytes: u32| {
        let script = format!("head -c {bytes} /dev/zero > \"$LEASEHOLD_NOTE_OUT\"");
        output(&mut store.run(&[], &script))
    };
    let next = || {
        output(&mut store.run(&[], "wc -c < \"${LEASEHOLD_NOTE_IN-/dev/null}\"; echo $LEASEHOLD_PREDECESSOR"))
    };

    let (status, _, stderr) = leave(300_000);
    assert_eq!(status, 0, "the work itself was done: {stderr}");
    assert!(stderr.contains("at most 262144 bytes, this one has 300000"), "{stderr}");
    assert_eq!(next().1, "0\nreleased\n");

    let (status, _, stderr) = leave(262_144);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert_eq!(next().1, "262144\nreleased\n", "the largest is passed on whole");
}

#[test]
fn a_relative_store_is_the_same_from_every_directory() {
    let store = Store::new();
    let script = "cd / && \"$0\" fence check door $LEASEHOLD_FENCE && echo admitted";
    let mut command = store.run(&["--store=sqlite:leases.db"], script);
    command.arg(env!("CARGO_BIN_EXE_leasehold")).current_dir(store.path(""));
    assert_eq!(output(&mut command).1, "admitted\n");
}

/// Cron and systemd start programs with next to nothing.
#[test]
fn an_empty_environment_is_enough() {
    let store = Store::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.env_clear().arg("--store").arg(store.url()).args(["run", JOB, "--", "/bin/sh", "-c", "echo ran"]);
    assert_eq!(output(&mut command), (0, "ran\n".into(), String::new()));
}
