//! Ends a process and its descendants when the test process itself is killed and can end nothing any more.

use rustix::process::Pid;
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

/// Whom to end is found out before anybody is ended, as orphans name no parent any more: a server may give its children
/// groups of their own, and one that is frozen does not notice that its parent is gone. Where there is no `/proc`, the
/// group is all that is ended.
const SCRIPT: &str = r#"
    read -r _
    group=$1 family= generation=$1
    while [ -n "$generation" ]; do
        family="$family $generation" next=
        for stat in /proc/[0-9]*/stat; do
            read -r line < "$stat" || continue
            set -- ${line##*) }
            case " $generation " in *" $2 "*) id=${stat#/proc/}; next="$next ${id%/stat}" ;; esac
        done
        generation=${next# }
    done
    kill -s KILL -- "-$group" $family
"#;

/// A shell that waits for the end of its input, which only this process holds open: however this process ends, the
/// kernel closes it. Unlike a parent-death signal this works on every Unix, and whatever thread started the process.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
}

impl Guard {
    pub(super) fn over(group: Pid) -> io::Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "leasehold-test-guard"])
            .arg(group.as_raw_nonzero().to_string())
            // Out of reach of a Ctrl-C at the terminal, which is when it is needed most.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { shell })
    }

    /// The group is gone, so there is nothing to guard. Before its id can be used again.
    pub(super) fn dismiss(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
