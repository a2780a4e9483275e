//! Replicas as processes: this program started again, in another part.

use super::{
    args::Args,
    chronicle::{Chronicle, Entry, What},
    directory::Directory,
    report::{Line, Report},
};
use crate::{clock::Stamp, process::Process};
use rustix::process::Signal;
use std::{io, net::SocketAddr, path::PathBuf, process::ExitStatus};
use tokio::process::Command;

/// What all replicas of a run share.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The arguments of the run, with the store filled in.
    pub args: Args,
    /// Where the parent serves the feed and the directory.
    pub upstream: SocketAddr,
    /// Where journals are.
    pub dir: PathBuf,
    /// Where replicas are.
    pub directory: Directory,
    /// Where everything is written down.
    pub chronicle: Chronicle,
}

/// A running replica. Dropping it kills its process.
#[derive(Debug)]
pub struct Player {
    /// Its id.
    pub id: String,
    process: Process,
    chronicle: Chronicle,
}

impl Stage {
    /// The journal of a replica.
    #[must_use]
    pub fn journal(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.journal"))
    }

    /// Starts the replica `id`.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(&self, id: &str) -> io::Result<Player> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--replica", id]).arg("--upstream").arg(self.upstream.to_string());
        command.arg("--journal").arg(self.journal(id));
        command.arg("--store").arg(self.args.store.as_deref().unwrap_or_default());
        command.arg("--replicas").arg(self.args.replicas.to_string());
        command.arg("--ttl").arg(format!("{}ms", self.args.ttl.as_millis()));
        self.chronicle.note(id, What::Started);
        let process = Process::start(&mut command, {
            let (stage, who) = (self.clone(), id.to_owned());
            move |line| stage.listen(&who, &line)
        })?;
        Ok(Player { id: id.to_owned(), process, chronicle: self.chronicle.clone() })
    }

    fn listen(&self, who: &str, text: &str) {
        let line = serde_json::from_str::<Line>(text).unwrap_or_else(|_| Line {
            at: Stamp::now(),
            report: Report::Trouble { what: format!("said something else than a report: {text}") },
        });
        if let Report::Listening { addr, .. } = line.report {
            self.directory.enter(who, addr);
        }
        self.chronicle.enter(Entry { at: line.at, who: who.to_owned(), what: What::Said(line.report) });
    }
}

impl Player {
    /// Asks a leader to stand still with the next delivery in hand, and to say so.
    ///
    /// # Errors
    /// When the process is gone.
    pub async fn hold_next_delivery(&mut self) -> io::Result<()> {
        self.process.hold().await
    }

    /// Asks no more for it.
    ///
    /// # Errors
    /// When the process is gone.
    pub async fn release(&mut self) -> io::Result<()> {
        self.process.go().await
    }

    /// SIGSTOP, and waits until the whole process stands still. Whoever stands still with a delivery in hand is told
    /// to go on, which it can only hear when it runs again.
    ///
    /// # Errors
    /// When the process is gone.
    pub async fn freeze(&mut self) -> io::Result<()> {
        self.process.freeze().await?;
        self.chronicle.note(&self.id, What::Stopped);
        self.release().await
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn thaw(&self) -> io::Result<()> {
        self.chronicle.note(&self.id, What::Continued);
        self.wake()
    }

    /// SIGCONT, without a word.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn wake(&self) -> io::Result<()> {
        self.process.thaw()
    }

    /// SIGKILL, and waits until the process is reaped.
    ///
    /// # Errors
    /// When the process cannot be signalled or waited for.
    pub async fn kill(self) -> io::Result<ExitStatus> {
        self.process.signal(Signal::KILL)?;
        self.chronicle.note(&self.id, What::Killed);
        self.end().await
    }

    /// SIGTERM: the replica should end by itself. The caller bounds the wait; dropping it kills the process.
    ///
    /// # Errors
    /// When the process cannot be signalled or waited for.
    pub async fn terminate(self) -> io::Result<ExitStatus> {
        self.process.signal(Signal::TERM)?;
        self.chronicle.note(&self.id, What::Terminated);
        self.end().await
    }

    async fn end(self) -> io::Result<ExitStatus> {
        let status = self.process.end().await?;
        self.chronicle.note(&self.id, What::Exited { status: status.to_string(), clean: status.success() });
        Ok(status)
    }
}
