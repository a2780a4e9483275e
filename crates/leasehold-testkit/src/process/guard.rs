//! Ends a process group when the test process itself is killed and can end nothing any more.

use rustix::process::Pid;
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

/// A shell that waits for the end of its input, which only this process holds open: however this process ends, the
/// kernel closes it. Unlike a parent-death signal this works on every Unix, and whatever thread started the process.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
}

impl Guard {
    pub(super) fn over(group: Pid) -> io::Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", "read -r _; kill -s KILL -- \"-$1\"", "leasehold-test-guard"])
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
