//! Child processes that an example starts, listens to, and treats badly.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::{
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    thread,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    task::JoinHandle,
};

use crate::hold::Hold;

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    // Closing it tells the child that its parent is gone.
    stdin: ChildStdin,
    reading: JoinHandle<()>,
    pid: Pid,
}

impl Process {
    /// Starts `command` and hands each line of its standard output to `take`.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(command: &mut Command, mut take: impl FnMut(String) + Send + 'static) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let gone = || io::Error::other("a process that was just started has no pipes");
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).ok_or_else(gone)?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or_else(gone)?;
        let reading = tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                take(line);
            }
        });
        Ok(Self { child, stdin, reading, pid })
    }

    /// Asks the child to stand still at its [`Hold`], and to say so.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn hold(&mut self) -> io::Result<()> {
        self.stdin.write_all(b"hold\n").await
    }

    /// Tells whoever stands still at the [`Hold`] to go on.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn go(&mut self) -> io::Result<()> {
        self.stdin.write_all(b"go\n").await
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    /// SIGSTOP, and waits until all of the child stands still.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn freeze(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        let pid = self.pid;
        // NOWAIT leaves the status to whoever reaps the child.
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = tokio::task::spawn_blocking(move || waitid(WaitId::Pid(pid), stopped))
            .await
            .map_err(io::Error::other)??;
        match status {
            Some(status) if status.stopped() => Ok(()),
            _ => Err(io::Error::other("a process ended instead of standing still")),
        }
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// When it is gone.
    pub fn thaw(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Waits until the child has ended and everything it said was read. Dropping the future kills it.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn end(mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        let _ = (&mut self.reading).await;
        Ok(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// The child's side: listens to the parent on a thread of its own, which a busy runtime cannot hold up, and ends the
/// process when the parent is gone.
pub fn obey(hold: Arc<Hold>) {
    // A child that is frozen cannot see the end of its input: where the kernel can, it ends the child itself.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    thread::spawn(move || {
        for line in io::stdin().lines() {
            match line.as_deref() {
                Ok("hold") => hold.arm(),
                Ok("go") => hold.go(),
                _ => break,
            }
        }
        std::process::exit(1);
    });
}
