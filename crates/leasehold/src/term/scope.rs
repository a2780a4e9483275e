//! What the worker's side and the holder's side of a term share.

use futures_util::FutureExt;
use leasehold_core::{Clock, Keeper, Moment, Note, Predecessor, Stale, TraceContext};
use ractor::RpcReplyPort;
use std::{
    any::Any,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Handle, sync::Notify, task::JoinSet};

/// What the worker's side and the holder's side of a term share.
pub(crate) struct Scope {
    pub(crate) grant: Keeper,
    pub(crate) predecessor: Predecessor,
    pub(crate) inherited: Option<Note>,
    /// The trace of the acquire, which everything later in the term links to.
    pub(crate) acquired_in: TraceContext,
    clock: Arc<dyn Clock>,
    app: Handle,
    quiesce: Mutex<Quiesce>,
    // Wakes whoever waits to be asked.
    asked: Notify,
    note: Mutex<Option<Note>>,
    tasks: Mutex<Tasks>,
    // Nanoseconds on `clock`.
    last_pulse: AtomicU64,
    outranked: OnceLock<Box<dyn Fn(Stale) + Send + Sync>>,
    // Shared with the tasks, which must not keep the scope that keeps them.
    panicked: Arc<OnceLock<TellPanic>>,
}

type TellPanic = Box<dyn Fn(Arc<str>) + Send + Sync>;

/// What a panic said, if it said it in words.
pub(crate) fn panic_text(whose: &str, panic: &(dyn Any + Send)) -> Arc<str> {
    let words =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("{whose} panicked: {}", words.unwrap_or("without words")).into()
}

/// Whether the worker is to end.
#[derive(Default)]
struct Quiesce {
    // How long it was given, if it is.
    within: Option<Duration>,
    // Whether it has seen that.
    noticed: bool,
    // To be told once it goes on.
    resumed: Option<RpcReplyPort<()>>,
}

impl Quiesce {
    /// Whoever asks whether it is to end has not ended.
    fn goes_on(&mut self) {
        if let Some(resumed) = self.resumed.take() {
            let _ = resumed.send(());
        }
    }
}

#[derive(Default)]
struct Tasks {
    set: JoinSet<()>,
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is a single assignment: a panic leaves whole values behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scope {
    pub(crate) fn new(
        grant: Keeper,
        predecessor: Predecessor,
        inherited: Option<Note>,
        acquired_in: TraceContext,
        clock: Arc<dyn Clock>,
        app: Handle,
    ) -> Self {
        let last_pulse = AtomicU64::new(clock.now().as_nanos());
        Self {
            grant,
            predecessor,
            inherited,
            acquired_in,
            clock,
            app,
            quiesce: Mutex::default(),
            asked: Notify::new(),
            note: Mutex::new(None),
            tasks: Mutex::new(Tasks::default()),
            last_pulse,
            outranked: OnceLock::new(),
            panicked: Arc::default(),
        }
    }

    pub(crate) fn ask_to_quiesce(&self, within: Duration) {
        lock(&self.quiesce).within = Some(within);
        self.asked.notify_waiters();
    }

    /// The worker need not end after all. `done` is told once it is known to go on: at once if it has not noticed that it was
    /// to end, else when it waits again to be asked.
    pub(crate) fn ask_to_resume(&self, done: RpcReplyPort<()>) {
        let mut quiesce = lock(&self.quiesce);
        quiesce.within = None;
        if std::mem::take(&mut quiesce.noticed) {
            quiesce.resumed = Some(done);
        } else {
            let _ = done.send(());
        }
    }

    pub(super) fn is_quiescing(&self) -> bool {
        let mut quiesce = lock(&self.quiesce);
        let asked = quiesce.within.is_some();
        quiesce.noticed |= asked;
        quiesce.goes_on();
        asked
    }

    pub(super) async fn quiescing(&self) -> Duration {
        lock(&self.quiesce).goes_on();
        loop {
            let mut asked = pin!(self.asked.notified());
            // In line before looking: whoever is asked between the two hears of it.
            asked.as_mut().enable();
            {
                let mut quiesce = lock(&self.quiesce);
                if let Some(within) = quiesce.within {
                    quiesce.noticed = true;
                    return within;
                }
            }
            asked.await;
        }
    }

    pub(crate) fn leave_note(&self, note: Note) {
        *lock(&self.note) = Some(note);
    }

    pub(crate) fn take_note(&self) -> Option<Note> {
        lock(&self.note).take()
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        if tasks.closed || self.grant.cause().is_some() {
            return;
        }
        while tasks.set.try_join_next().is_some() {}
        let panicked = self.panicked.clone();
        let watched = async move {
            let Err(panic) = AssertUnwindSafe(task).catch_unwind().await else { return };
            if let Some(tell) = panicked.get() {
                tell(panic_text("a task of the term", &*panic));
            }
        };
        tasks.set.spawn_on(watched, &self.app);
    }

    /// Aborts every task of the term; none can be started any more.
    pub(crate) fn abort_tasks(&self) {
        let mut tasks = lock(&self.tasks);
        tasks.closed = true;
        tasks.set.abort_all();
    }

    /// Aborts every task of the term, and waits until the last has been dropped.
    pub(crate) async fn join_tasks(&self) {
        self.abort_tasks();
        let mut set = std::mem::take(&mut lock(&self.tasks).set);
        while set.join_next().await.is_some() {}
    }

    pub(crate) fn beat(&self) {
        self.last_pulse.fetch_max(self.clock.now().as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn last_pulse(&self) -> Moment {
        Moment::from_nanos(self.last_pulse.load(Ordering::Relaxed))
    }

    pub(crate) fn on_panic(&self, tell: impl Fn(Arc<str>) + Send + Sync + 'static) {
        let _ = self.panicked.set(Box::new(tell));
    }

    pub(crate) fn on_outranked(&self, tell: impl Fn(Stale) + Send + Sync + 'static) {
        let _ = self.outranked.set(Box::new(tell));
    }

    pub(super) fn outranked(&self, stale: Stale) {
        // At once for every check of this process; the renewer follows.
        self.grant.end(leasehold_core::LostCause::Stale(stale));
        if let Some(tell) = self.outranked.get() {
            tell(stale);
        }
    }
}
