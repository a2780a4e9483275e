//! What the command finds in its environment.

use crate::launch::{output, wrapping};

#[test]
fn what_an_outer_lease_said_is_not_inherited() {
    let mut command = wrapping(&[], "env | grep ^LEASEHOLD_; echo $OTHER");
    command.env("LEASEHOLD_NAME", "outer").env("LEASEHOLD_NOTE_IN", "/outer/note").env("LEASEHOLD_SLOT", "x");
    command.env("OTHER", "kept");
    let (code, stdout, _) = output(&mut command);
    assert_eq!((code, &*stdout), (0, "LEASEHOLD_NAME=bare\nkept\n"));
}

#[test]
fn the_command_starts_with_ordinary_signals() {
    // SIGPIPE (13) is ignored by every Rust program, SIGTTOU (22) blocked by the wrapper: neither is the command's. 32
    // and 33 are the C library's own.
    let (_, stdout, _) = output(&mut wrapping(&[], "grep -E '^Sig(Blk|Ign)' /proc/self/status"));
    let masks: Vec<_> = stdout
        .lines()
        .map(|line| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap())
        .collect();
    assert_eq!(masks.len(), 2, "{stdout}");
    assert!(masks.iter().all(|mask| mask & 0x7fff_ffff == 0), "{stdout}");
}
