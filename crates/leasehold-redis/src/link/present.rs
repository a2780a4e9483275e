//! The connections that there are, one for each runtime that asks, and those that are being made.
//!
//! ```text
//! way() ─► the connection of this runtime, if there is one
//!     └─► else the task that makes one, started if there is none; whoever asks meanwhile waits for the same
//! ```
//!
//! A connection is made by a task of its own: a caller with a short deadline gives up, the connection comes all the same,
//! and the next caller finds it. Between two attempts lies a back-off with jitter, so that the replicas of a service do not
//! come back all at once.

use super::{Shared, way::Way};
use crate::error::Fault;
use leasehold_core::{StoreErrorKind, backoff::Backoff};
use redis::{ErrorKind, RedisError};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    runtime::{Handle, Id},
    sync::watch,
};

/// The first and the longest pause between two attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// Which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    /// The runtime it was made on. The task that serves a connection runs there: on a runtime that is blocked by its work,
    /// it would hold up renewals that were put on another one for that very reason.
    on: Id,
    /// So that an old connection's error does not remove a new one.
    number: u64,
}

/// What became of an attempt to connect; `None` as long as it goes on.
type Attempt = watch::Receiver<Option<Result<(Way, Tag), Fault>>>;

/// All connections.
pub(super) struct Present {
    // A std mutex: held to look and to set, never over an await.
    state: Mutex<State>,
}

struct State {
    made: Vec<(Way, Tag)>,
    attempts: Vec<(Id, Attempt)>,
    /// Those that are being tried out.
    doubted: Vec<Tag>,
    number: u64,
    failures: u64,
    backoff: Backoff,
}

impl Present {
    pub(super) fn new(seed: u64) -> Self {
        let state = State {
            made: Vec::new(),
            attempts: Vec::new(),
            doubted: Vec::new(),
            number: 0,
            failures: 0,
            backoff: Backoff::new(PAUSES.0, PAUSES.1, seed),
        };
        Self { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change leaves it whole, so that a panic does, too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection turned out to be no good: the next one who asks gets another one.
///
/// One to a Cluster is replaced, not removed: it may be good for all servers but one. It finds lost servers again by itself,
/// but not silent ones. It can be replaced on its own runtime only; told on another one, as by a request that was dropped there,
/// it is removed as well.
pub(super) fn give_up(shared: &Arc<Shared>, tag: Tag, error: &RedisError) {
    let mut state = shared.present.state();
    let Some(at) = state.made.iter().position(|(_, other)| *other == tag) else { return };
    let silent = error.is_timeout() || error.kind() == ErrorKind::Parse;
    let at_home = Handle::try_current().is_ok_and(|here| here.id() == tag.on);
    if !state.made[at].0.is_to_a_cluster() || silent && !at_home {
        state.made.swap_remove(at);
    } else if silent && state.attempt(tag.on).is_none() {
        connect(&mut state, shared, tag.on);
    }
}

impl State {
    fn way(&self, on: Id) -> Option<(Way, Tag)> {
        self.made.iter().find(|(_, tag)| tag.on == on).cloned()
    }

    fn attempt(&self, on: Id) -> Option<Attempt> {
        self.attempts.iter().find(|(of, _)| *of == on).map(|(_, attempt)| attempt.clone())
    }
}

/// The connection of this runtime, made if there is none. Cancel safe.
pub(super) async fn way(shared: &Arc<Shared>) -> Result<(Way, Tag), Fault> {
    let here = Handle::current().id();
    let mut attempt = {
        let mut state = shared.present.state();
        if let Some(way) = state.way(here) {
            return Ok(way);
        }
        state.attempt(here).unwrap_or_else(|| connect(&mut state, shared, here))
    };
    match attempt.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(outcome)) => outcome.clone(),
        // It ended with its runtime, or by a panic: the next one who asks begins anew.
        Ok(None) | Err(_) => {
            shared.present.state().attempts.retain(|(of, _)| *of != here);
            Err(StoreErrorKind::Unreachable.into())
        }
    }
}

fn connect(state: &mut State, shared: &Arc<Shared>, here: Id) -> Attempt {
    let pause = (state.failures > 0).then(|| state.backoff.next_delay());
    let (tell, attempt) = watch::channel(None);
    state.attempts.push((here, attempt.clone()));
    let shared = shared.clone();
    tokio::spawn(async move {
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
        let connected = shared.route.connect(&shared.config).await;
        let mut state = shared.present.state();
        state.attempts.retain(|(of, _)| *of != here);
        let outcome = connected.map(|way| {
            state.failures = 0;
            state.backoff.reset();
            state.number += 1;
            let tag = Tag { on: here, number: state.number };
            state.made.retain(|(_, old)| old.on != here);
            state.made.push((way.clone(), tag));
            (way, tag)
        });
        state.failures += u64::from(outcome.is_err());
        drop(state);
        tell.send_replace(Some(outcome));
    });
    attempt
}

/// A request on its way. Dropped before its answer came, it leaves a doubt: the caller was in a hurry, or nobody is there
/// any more, as behind a cable that was cut, and then no error would ever tell.
pub(super) struct Flight<'a> {
    shared: &'a Arc<Shared>,
    tag: Tag,
    slot: Option<u16>,
    landed: bool,
}

impl<'a> Flight<'a> {
    /// `slot` is the one that the request is about, if it has any.
    pub(super) const fn begin(shared: &'a Arc<Shared>, tag: Tag, slot: Option<u16>) -> Self {
        Self { shared, tag, slot, landed: false }
    }

    /// An answer came, or an error that says enough.
    pub(super) fn land(mut self) {
        self.landed = true;
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.landed {
            doubt(self.shared, self.tag, self.slot);
        }
    }
}

/// Tries a connection out, and gives it up if it says nothing. One trial at a time.
fn doubt(shared: &Arc<Shared>, tag: Tag, slot: Option<u16>) {
    let Ok(here) = Handle::try_current() else { return };
    let mut state = shared.present.state();
    let Some((way, _)) = state.made.iter().find(|(_, other)| *other == tag) else { return };
    if state.doubted.contains(&tag) {
        return;
    }
    let mut way = way.clone();
    state.doubted.push(tag);
    // A runtime that is ending drops its new tasks at once, and the trial with it.
    drop(state);
    let trial = Trial { shared: Arc::downgrade(shared), tag };
    here.spawn(async move {
        // The connection itself waits for an answer no longer than `response_timeout`.
        let answer = way.ping(slot).await;
        let Some(shared) = trial.shared.upgrade() else { return };
        // An error that the server tells is an answer.
        if let Err(error) = answer
            && error.code().is_none()
        {
            give_up(&shared, tag, &error);
        }
    });
}

/// A connection that is being tried out, until that has ended, perhaps with the runtime it was done on.
struct Trial {
    shared: Weak<Shared>,
    tag: Tag,
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.present.state().doubted.retain(|other| *other != self.tag);
        }
    }
}
