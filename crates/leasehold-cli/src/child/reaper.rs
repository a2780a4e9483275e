//! The one place that waits for processes.
//!
//! The program is the *subreaper* of all its descendants: when a member of a command's group loses its parent, it
//! becomes ours, and so the group can be seen to end. Anything that waits for "any child" takes the status of every
//! child, so there is one waiter: nothing else in this program may spawn or wait (`tokio::process` least of all).
//! It also does what process 1 of a container must do.

use super::{ChildStatus, Guard, group::Group};
use rustix::{
    io::Errno,
    process::{Pid, WaitOptions, wait},
};
use std::{
    collections::HashMap,
    io,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Notify, watch},
    time::timeout,
};

/// What is known of a process that we started.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Life {
    /// Set once, when it ended and was reaped.
    pub(super) ended: Option<ChildStatus>,
    /// The signal that stopped it, while it is stopped.
    pub(super) stopped: Option<i32>,
    /// Counts its stops, so that none is reported twice.
    pub(super) stops: u64,
}

/// Starts processes and reaps them and what they leave. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reaper {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// A plain mutex: held for a spawn or a sweep, never over an await.
    book: Mutex<Book>,
    /// Notified after each sweep that reaped something.
    reaped: Notify,
}

#[derive(Debug, Default)]
struct Book {
    /// The processes that we started and that have not ended.
    lives: HashMap<Pid, watch::Sender<Life>>,
    /// The groups that may still have members.
    groups: Vec<Arc<Group>>,
}

impl Reaper {
    /// Makes this process the subreaper of its descendants and begins to reap. Needs a running tokio runtime.
    ///
    /// # Errors
    /// If the handler for CHLD cannot be installed.
    pub fn start() -> io::Result<Self> {
        // An inherited "ignore" of CHLD would have the kernel throw statuses away; the handler undoes it.
        let mut children = signal(SignalKind::child())?;
        #[cfg(target_os = "linux")]
        if let Err(errno) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
            tracing::warn!(%errno, "orphans of the command will not be waited for");
        }
        let reaper = Self { shared: Arc::default() };
        let shared = Arc::downgrade(&reaper.shared);
        tokio::spawn(async move {
            while children.recv().await.is_some() {
                let Some(shared) = shared.upgrade() else { break };
                shared.sweep();
            }
        });
        Ok(reaper)
    }

    /// Starts a process that leads a new group. Its status will be told on the receiver.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<(Arc<Group>, watch::Receiver<Life>)> {
        // Held from before the fork, so that a sweep on another thread cannot reap a child it does not know yet.
        let mut book = self.shared.book();
        let process = command.spawn()?;
        // A process id is positive and fits.
        let pid = Pid::from_child(&process);
        let (life, told) = watch::channel(Life::default());
        let group = Arc::new(Group::new(pid));
        book.lives.insert(pid, life);
        book.groups.retain(|group| !group.is_gone());
        book.groups.push(group.clone());
        Ok((group, told))
    }

    /// Starts a guard. Nobody waits for it, except the sweep that reaps it.
    pub(super) fn post_guard(&self) -> Option<Guard> {
        let posted = Guard::prepare().and_then(|(guard, mut command)| {
            let _book = self.shared.book();
            command.spawn().map(|_| guard)
        });
        if let Err(error) = &posted {
            tracing::warn!(%error, "no guard could be started: what the command starts will not be ended if this process is killed");
        }
        posted.ok()
    }

    /// Waits until no member of the group is left.
    pub(super) async fn gone(&self, group: &Group) {
        self.watch_over(group, || {}).await;
    }

    /// Kills what is left of a group, again and again, until nothing is: a member may fork between two looks.
    pub(super) async fn kill(&self, group: &Group) {
        self.watch_over(group, || group.signal(rustix::process::Signal::KILL)).await;
    }

    /// Kills and reaps whatever is left of all groups, so that nothing that ran under a lease outlives this process.
    pub async fn settle(&self) {
        let groups = std::mem::take(&mut self.shared.book().groups);
        for group in groups {
            self.kill(&group).await;
        }
    }

    /// Blocks until a group that was sent KILL is gone, but not longer than `at_most`. For whoever cannot await.
    pub(super) fn bury(&self, group: &Group, at_most: Duration) {
        let pause = Duration::from_millis(1);
        for _ in 0..at_most.as_millis() {
            self.shared.sweep();
            if group.is_gone() {
                return;
            }
            std::thread::sleep(pause);
        }
    }

    /// Looks after each reaping, and now and then besides: the death of a member whose parent lives outside of the
    /// group is told to that parent, not to us.
    async fn watch_over(&self, group: &Group, mut each: impl FnMut()) {
        let mut pause = Duration::from_millis(1);
        loop {
            let reaped = self.shared.reaped.notified();
            each();
            self.shared.sweep();
            if group.is_gone() || (pause >= Self::SLOWEST && group.is_dead()) {
                return;
            }
            timeout(pause, reaped).await.ok();
            pause = (pause * 2).min(Self::SLOWEST);
        }
    }

    const SLOWEST: Duration = Duration::from_millis(50);
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        // Each change of the book is one call, so that a panic leaves it whole.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sweep(&self) {
        let mut book = self.book();
        let mut any = false;
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
                Ok(Some((pid, status))) => {
                    if let Some(status) = ChildStatus::of(status) {
                        any = true;
                        if let Some(life) = book.lives.remove(&pid) {
                            life.send_modify(|life| (life.ended, life.stopped) = (Some(status), None));
                        }
                    } else if let Some(life) = book.lives.get(&pid) {
                        life.send_modify(|life| {
                            life.stopped = status.stopping_signal();
                            life.stops += u64::from(life.stopped.is_some());
                        });
                    }
                }
                Err(Errno::INTR) => {}
                // None changed, or none left.
                Ok(None) | Err(_) => break,
            }
        }
        drop(book);
        if any {
            self.reaped.notify_waiters();
        }
    }
}
