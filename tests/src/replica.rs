//! A running replica: started, ordered about, listened to, paused, killed.

mod casting;

pub use casting::Casting;

use crate::{Deadline, Log, Order, Said, What};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
};

/// A process that runs the program `replica`. It is killed when this is dropped.
///
/// Waiting goes forward only: what was passed over is not found again, so the calls of a test state an order. A call
/// that waits in vain panics with everything that the replica said.
#[derive(Debug)]
pub struct Replica {
    id: String,
    child: Child,
    pid: Pid,
    orders: ChildStdin,
    log: Arc<Log<Said>>,
    complaints: Arc<Log<String>>,
    read: usize,
}

/// A term that began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquired {
    /// When it was told, in nanoseconds of the host's boot clock.
    pub at: u64,
    /// Its fence.
    pub fence: u64,
    /// How the term before ended: the word for it, and its fence.
    pub after: (String, Option<u64>),
}

impl Acquired {
    /// Whether the term before, under this fence, ended in order: released to anyone, or handed over, which depends on
    /// whether the candidate was in the roster by then.
    pub fn follows_in_order(&self, fence: u64) -> bool {
        matches!(self.after.0.as_str(), "released" | "handed-off") && self.after.1 == Some(fence)
    }
}

impl Replica {
    pub(crate) fn start(id: &str, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        let pid = Pid::from_child(&child);
        let orders = child.stdin.take().expect("a piped stdin");
        let (log, complaints) = (Arc::<Log<Said>>::default(), Arc::<Log<String>>::default());
        listen(child.stdout.take().expect("a piped stdout"), log.clone(), |line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("a replica said {line:?}: {error}"))
        });
        listen(child.stderr.take().expect("a piped stderr"), complaints.clone(), str::to_owned);
        Self { id: id.into(), child, pid, orders, log, complaints, read: 0 }
    }

    /// Its replica id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Gives an order. A paused replica finds it when it wakes.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn order(&mut self, order: Order) {
        let given = writeln!(self.orders, "{order}");
        given.unwrap_or_else(|error| panic!("{order} cannot be given ({error}): {}", self.story()));
    }

    /// Waits for the next thing it says that `fits`.
    ///
    /// # Panics
    /// If nothing does before time is up, or before the process ends.
    pub fn wait(&mut self, what: &str, fits: impl Fn(&Said) -> bool) -> Said {
        match self.log.wait(self.read, Deadline::patient(), fits) {
            Some((at, said)) => {
                self.read = at + 1;
                said
            }
            None => panic!("waited in vain for {what}: {}", self.story()),
        }
    }

    /// Waits until it says, or has said at any time, what `fits`. For things that come in no fixed order.
    ///
    /// # Panics
    /// As [`Replica::wait`].
    pub fn heard(&self, what: &str, fits: impl Fn(&Said) -> bool) -> Said {
        match self.log.wait(0, Deadline::patient(), fits) {
            Some((_, said)) => said,
            None => panic!("waited in vain for {what}: {}", self.story()),
        }
    }

    /// Waits until its node runs.
    pub fn ready(&mut self) {
        self.wait("ready", |said| said.what == What::Ready);
    }

    /// Waits until its campaign is a waiter's: it has asked, and was told that somebody else holds the lease.
    ///
    /// There is no event for that; what is told is that the campaign began, and a bid follows at once.
    pub fn campaigning(&mut self) {
        self.wait("campaigning", |said| said.what == What::Campaigning);
    }

    /// Waits for its next term.
    pub fn acquired(&mut self) -> Acquired {
        let said = self.wait("acquired", |said| matches!(said.what, What::Acquired { .. }));
        match said {
            Said { at, fence: Some(fence), what: What::Acquired { fate, after, .. }, .. } => {
                Acquired { at, fence, after: (fate, after) }
            }
            other => panic!("acquired without a fence: {other:?}"),
        }
    }

    /// Waits until it tells the loss of this term, and why.
    pub fn lost(&mut self, fence: u64) -> String {
        let lost = |said: &Said| said.fence == Some(fence) && matches!(said.what, What::Lost { .. });
        match self.wait(&format!("the loss of {fence}"), lost).what {
            What::Lost { cause } => cause,
            other => panic!("{other:?} is no loss"),
        }
    }

    /// Waits until a write with this text was taken by the ledger.
    pub fn wrote(&mut self, text: &str) {
        let wrote = What::Wrote { text: text.into() };
        self.wait(&format!("{text:?} written"), |said| said.what == wrote);
    }

    /// Everything it said so far.
    #[must_use]
    pub fn said(&self) -> Vec<Said> {
        self.log.all()
    }

    /// How often it said what `fits` so far.
    #[must_use]
    pub fn count(&self, fits: impl Fn(&What) -> bool) -> usize {
        self.said().iter().filter(|said| fits(&said.what)).count()
    }

    /// Whether a worker of it has begun a term that it has not ended, as far as it has said.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.count(|what| matches!(what, What::Began { .. })) > self.count(|what| *what == What::Ended)
    }

    /// What it printed on standard error so far.
    #[must_use]
    pub fn complaints(&self) -> String {
        self.complaints.all().join("\n")
    }

    /// SIGSTOP; returns when every thread of it stands still.
    ///
    /// # Panics
    /// If it ended instead.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        // NOWAIT leaves the status to whoever reaps the child.
        let events = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid), events).expect("a child of this process");
        assert!(status.is_some_and(|status| status.stopped()), "it did not stop: {}", self.story());
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGKILL; returns when the process is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("a child of this process");
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal)
            .unwrap_or_else(|error| panic!("{signal:?} cannot be sent ({error}): {}", self.story()));
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it goes on.
    pub fn exit(&mut self) -> ExitStatus {
        let what = format!("{} ends", self.id);
        Deadline::patient().poll(&what, || self.child.try_wait().expect("a child of this process"))
    }

    /// Whether it has not ended.
    ///
    /// # Panics
    /// If the operating system does not tell.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child of this process").is_none()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn story(&self) -> String {
        let said: Vec<_> = self.said().iter().map(|said| format!("  {said:?}")).collect();
        format!("{} said\n{}\nand on stderr\n{}", self.id, said.join("\n"), self.complaints())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // Also ends a paused one. An error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen<T: Clone + Send + 'static>(
    stream: impl Read + Send + 'static,
    log: Arc<Log<T>>,
    read: impl Fn(&str) -> T + Send + 'static,
) {
    thread::spawn(move || {
        // Closed however this thread ends, or a test would wait for its full time.
        let log = Closing(log);
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            log.0.push(read(&line));
        }
    });
}

struct Closing<T: Clone>(Arc<Log<T>>);

impl<T: Clone> Drop for Closing<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}
