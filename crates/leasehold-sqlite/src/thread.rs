//! A thread that owns a connection, and how async code asks it: SQLite blocks, and a runtime must not.

use crate::db::Db;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread::JoinHandle,
};
use tokio::sync::oneshot;

/// A piece of work for a thread with a connection.
pub(crate) type Job = Box<dyn FnOnce(&mut Db) + Send>;

/// Whoever waits for an answer.
#[derive(Debug)]
pub(crate) struct Caller<T>(oneshot::Sender<T>);

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The thread had ended: certainly nothing was done.
    NeverAsked,
    /// The thread ended, or the work panicked: perhaps something was done.
    NoAnswer,
}

impl<T> Caller<T> {
    /// Whether nobody waits any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

/// Has `work` done by the thread behind `send`, which says whether the thread is there. Work whose caller has gone
/// before it began is not begun.
pub(crate) async fn ask<T: Send + 'static>(
    send: impl FnOnce(Job) -> bool,
    work: impl FnOnce(&mut Db, &Caller<T>) -> T + Send + 'static,
) -> Result<T, Silence> {
    let (reply, answer) = oneshot::channel();
    let caller = Caller(reply);
    let job: Job = Box::new(move |db| {
        if !caller.is_gone() {
            let answer = work(db, &caller);
            drop(caller.0.send(answer));
        }
    });
    if !send(job) {
        return Err(Silence::NeverAsked);
    }
    answer.await.map_err(|_| Silence::NoAnswer)
}

/// Does a job. One that panics costs its own answer and the connection, not the thread.
pub(crate) fn perform(db: &mut Db, job: Job) {
    if catch_unwind(AssertUnwindSafe(|| job(db))).is_err() {
        tracing::error!(store = %db.site.address, "a request to the store panicked; its outcome is unknown");
        db.reset();
    }
}

/// The thread that writes. It ends when the last sender to it is gone.
#[derive(Debug)]
pub(crate) struct Writer {
    // `None` only while it is dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(mut db: Db) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let thread = std::thread::Builder::new().name("leasehold-write".into()).spawn(move || {
            for job in queue {
                perform(&mut db, job);
            }
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// A way to send jobs. The thread lives as long as one is kept.
    pub(crate) fn sender(&self) -> mpsc::Sender<Job> {
        // A closed channel stands in for one that is gone.
        self.jobs.clone().unwrap_or_else(|| mpsc::channel().0)
    }

    /// Queues a job; false if the thread has ended.
    pub(crate) fn send(&self, job: Job) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked: jobs are caught, and there is nothing else in it.
            drop(thread.join());
        }
    }
}
