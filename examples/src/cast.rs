//! Several processes of one play, and what they say.

use crate::{
    clock::{Brief, Stamp},
    process::Process,
};
use leasehold::BoxError;
use rustix::process::Signal;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    io::{Write as _, stdout},
    time::Duration,
};
use tokio::{process::Command, sync::mpsc, time::timeout};

/// Far above what anything takes: it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// The processes, each of which prints lines of JSON. Dropping it kills them.
#[derive(Debug)]
pub struct Cast<S> {
    players: Vec<(String, Option<Process>)>,
    told: mpsc::UnboundedSender<(usize, S)>,
    lines: mpsc::UnboundedReceiver<(usize, S)>,
    begun: Stamp,
    quiet: bool,
}

/// Prints a line for the parent. One that is gone hears nothing, and ends us by itself.
pub fn say<S: Serialize>(said: &S) {
    let _ = writeln!(stdout(), "{}", serde_json::to_string(said).unwrap_or_default());
}

impl<S: DeserializeOwned + Send + 'static> Cast<S> {
    /// Nobody yet. With `quiet`, nothing is told on the standard output.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let (told, lines) = mpsc::unbounded_channel();
        Self { players: Vec::new(), told, lines, begun: Stamp::now(), quiet }
    }

    /// Starts this program once more, with other arguments, and says which of the processes it is.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&mut self, name: &str, args: &[&str]) -> Result<usize, BoxError> {
        let at = self.players.len();
        let told = self.told.clone();
        let mut command = Command::new(std::env::current_exe()?);
        let process = Process::start(command.args(args), move |line| {
            if let Ok(line) = serde_json::from_str(&line) {
                // The play may be over already.
                let _ = told.send((at, line));
            }
        })?;
        self.players.push((name.to_owned(), Some(process)));
        Ok(at)
    }

    /// The name of a process.
    #[must_use]
    pub fn name(&self, at: usize) -> &str {
        &self.players[at].0
    }

    /// One that has not ended.
    ///
    /// # Errors
    /// When it has.
    pub fn process(&mut self, at: usize) -> Result<&mut Process, BoxError> {
        self.players[at].1.as_mut().ok_or_else(|| "that process has ended".into())
    }

    /// Tells the audience.
    pub fn tell(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(stdout(), "{:>9}  {text}", Brief(Stamp::now() - self.begun).to_string());
        }
    }

    /// Takes in what is said until `wanted` finds what it looks for.
    ///
    /// # Errors
    /// When nobody says it within a minute.
    pub async fn until<T>(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(usize, S) -> Option<T>,
    ) -> Result<T, BoxError> {
        loop {
            let line = timeout(PATIENCE, self.lines.recv()).await;
            let Ok(Some((at, said))) = line else { return Err(format!("waited in vain for {what}").into()) };
            if let Some(found) = wanted(at, said) {
                return Ok(found);
            }
        }
    }

    /// SIGKILL, and waits for its end.
    ///
    /// # Errors
    /// When it has ended already.
    pub async fn kill(&mut self, at: usize) -> Result<(), BoxError> {
        let process = self.players[at].1.take().ok_or("that process has ended")?;
        process.signal(Signal::KILL)?;
        timeout(PATIENCE, process.end()).await??;
        Ok(())
    }

    /// SIGTERM to everyone, and waits for their end.
    ///
    /// # Errors
    /// When one ends in a failure, or not at all.
    pub async fn end(&mut self) -> Result<(), BoxError> {
        for (name, process) in &mut self.players {
            let Some(process) = process.take() else { continue };
            // It may have ended by itself.
            let _ = process.signal(Signal::TERM);
            let status = timeout(PATIENCE, process.end()).await??;
            if !status.success() {
                return Err(format!("{name} ended with {status}").into());
            }
        }
        Ok(())
    }
}
