//! Work under a lock that a PostgreSQL session holds.
//!
//! ```text
//! LockKeeper                its death is the loss, and the loss is its death
//! └── worker                a future in a small actor; whatever ends the keeper ends it
//!
//! prover   asks for proofs, and hears the connection's end        ─ Gone → LockKeeper
//! joiner   has the lock: closes the connection once the worker has ended, and not before (I6)
//! ```
//! A lease in a store is the better choice unless the lock's own properties are wanted: no ttl, no table, and a successor
//! within milliseconds of a crash. See `docs/choosing.md`.

mod keeper;

pub use leasehold_postgres::{
    Config, Key, MAX_SILENCE, MIN_SILENCE, NotLocked, SessionLock, SessionLost, WantedLock,
};

use crate::{
    renewer::{Berth, Leash},
    term::{Scope, Term},
    worker::{BoxError, TaskCrew, Work},
};
use futures_util::FutureExt;
use keeper::{KeeperArgs, KeeperMsg, LockKeeper, Report};
use leasehold_core::{
    AttemptId, BootClock, Claim, Fence, Keeper, LeaseName, Predecessor, ReplicaId, TraceContext,
};
use ractor::{Actor, ActorRef};
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{runtime::Handle, sync::oneshot};

/// Work that ran to its end under a session's lock.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "it says whether the lock was held to the end of the work"]
pub struct Locked<T> {
    /// What the work returned.
    pub output: T,
    /// The fence under which it ran.
    pub fence: Fence,
    /// Set if the lock was lost before the work returned, or if the server did not confirm that it was held when it was given
    /// back: the last steps of the work may not have been covered.
    pub lost: Option<SessionLost>,
}

/// Work was not done to its end under a session's lock. The connection of the lock is closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionHoldError {
    /// The lock was lost, and the work was dropped before its end.
    #[error("{0}; the work was dropped before its end")]
    Lost(#[source] SessionLost),
    /// The work panicked. The lock was given back after it.
    #[error("the work under a session's lock panicked: {0}")]
    Panicked(Arc<str>),
    /// The keeper of the lock was stopped, or its runtime is shutting down. The work was dropped before its end.
    #[error("the work under a session's lock was stopped before its end")]
    Stopped,
}

/// Runs `work` while `lock` is held, and gives the lock back after the work has ended, by closing its connection.
///
/// # What is guaranteed
/// * The work is dropped at its next `.await` when the lock is lost: when its connection ends, when a proof fails, or when none
///   came in time; and when the keeper of the lock ends for any other reason.
/// * [`Term::check`] compares the clock with the end of trust in the lock, as for a lease. [`Term::fence`] is
///   [`SessionLock::fence`]: present it with each write.
/// * The lock is not given back before the work, and all it gave to [`Term::spawn`], has ended (I6). Work that blocks its thread
///   keeps it.
/// * Dropping the future drops the work, and gives the lock back after that, in the background.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::session_lock::{self, Config, WantedLock};
///
/// let config = Config::parse("postgres://app@db.example/app?sslmode=verify-full")?;
/// let lock = WantedLock::new("nightly-import").open(&config).await?;
/// let done = session_lock::hold(lock, |term| async move {
///     println!("importing under fence {}", term.fence());
/// });
/// done.await?.output;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`SessionHoldError`]: lost, panicked, or stopped.
pub async fn hold<T, F, Fut>(lock: SessionLock, work: F) -> Result<Locked<T>, SessionHoldError>
where
    T: Send + 'static,
    F: FnOnce(Term) -> Fut + Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let fence = lock.fence();
    let app = Handle::current();
    let clock = Arc::new(BootClock);
    let claim =
        Claim { name: name(&lock), replica: ReplicaId::generate(), attempt: AttemptId::random(), fence };
    let grant = Keeper::new(claim, lock.trusted_until(), clock.clone());
    let scope = Arc::new(Scope::new(grant, Predecessor::None, None, TraceContext::NONE, clock, app.clone()));
    let ended = Arc::new(Mutex::new(None));
    let (report, reported) = oneshot::channel();
    let crew = Box::new(TaskCrew::new(once(work, ended.clone()), None));
    let berth = Arc::<Berth>::default();
    let keeper = LockKeeper::new(Leash::new(berth, scope.clone()));
    let args = KeeperArgs { lock, scope, crew, app, report };
    let (keeper, _) = Actor::spawn(None, keeper, args).await.map_err(|_| SessionHoldError::Stopped)?;
    let _leaving = Leaving(keeper);
    let Report { lost } = reported.await.map_err(|_| SessionHoldError::Stopped)?;
    match (take(&ended), lost) {
        (Some(Ok(output)), lost) => Ok(Locked { output, fence, lost }),
        (Some(Err(message)), _) => Err(SessionHoldError::Panicked(message)),
        (None, Some(lost)) => Err(SessionHoldError::Lost(lost)),
        (None, None) => Err(SessionHoldError::Stopped),
    }
}

/// What the term is called: as the lock, if that fits.
fn name(lock: &SessionLock) -> LeaseName {
    let key = lock.key();
    let named = key.name().and_then(|name| LeaseName::new(name).ok());
    #[allow(clippy::expect_used, reason = "a number and a few words are a good name")]
    named.unwrap_or_else(|| LeaseName::new(key.number()).expect("a short name"))
}

type Outcome<T> = Arc<Mutex<Option<Result<T, Arc<str>>>>>;

fn take<T>(ended: &Outcome<T>) -> Option<Result<T, Arc<str>>> {
    ended.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The work, once, with its outcome kept.
fn once<T, F, Fut>(work: F, ended: Outcome<T>) -> impl Fn(Term) -> Work + Send + Sync + 'static
where
    T: Send + 'static,
    F: FnOnce(Term) -> Fut + Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let work = Mutex::new(Some(work));
    move |term| {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = ended.clone();
        Box::pin(async move {
            // A lock has one term, so the work is there.
            let Some(work) = work else { return Ok(()) };
            // Also of the closure itself.
            let done = AssertUnwindSafe(async move { work(term).await }).catch_unwind().await;
            let outcome = done.map_err(|panic| crate::term::panic_text("the work", &*panic));
            let failed = outcome.as_ref().err().cloned();
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            match failed {
                Some(message) => Err(BoxError::from(&*message)),
                None => Ok(()),
            }
        })
    }
}

/// Ends the keeper when whoever waited has gone.
struct Leaving(ActorRef<KeeperMsg>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.stop(None);
    }
}
