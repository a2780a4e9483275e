//! What must be stopped before the root is, and how the node ended.

use super::Stopped;
use ractor::{ActorCell, ActorStatus};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// What must be stopped before the root is. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Members(Arc<Shared>);

#[derive(Default)]
struct Shared {
    roll: Mutex<Roll>,
    /// A start is over.
    arrived: Notify,
}

#[derive(Default)]
struct Roll {
    list: Vec<Member>,
    // Starts under way: such an actor may run already, and is not in the list yet.
    starting: usize,
    // Set when the shutdown begins: nothing new is started from then on.
    closed: bool,
    outcome: Option<Stopped>,
}

/// An election or a held lease, and how to stop it.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) cell: ActorCell,
    pub(super) stop: Arc<dyn Fn(Duration) + Send + Sync>,
}

/// A place kept for an actor that is being started: until it is filled or given up, a shutdown waits for it.
pub(super) struct Place(Members);

impl Members {
    /// Keeps a place; none once the shutdown has begun. Both are decided under one lock, so a shutdown either refuses
    /// a start or knows of it.
    pub(super) fn place(&self) -> Option<Place> {
        let mut roll = self.roll();
        if roll.closed {
            return None;
        }
        roll.starting += 1;
        Some(Place(self.clone()))
    }

    /// Nothing is started from now on. Whether this was the first to say so.
    pub(super) fn close(&self) -> bool {
        !std::mem::replace(&mut self.roll().closed, true)
    }

    /// Those that have not ended yet, once there are any; empty when there are none and no start is under way. Shared,
    /// not taken: two shutdowns at once both wait for all of them.
    pub(super) async fn alive(&self) -> Vec<Member> {
        loop {
            let mut arrived = std::pin::pin!(self.0.arrived.notified());
            // Before the look, so that an arrival in between is heard of.
            arrived.as_mut().enable();
            {
                let roll = self.roll();
                let alive: Vec<_> = roll.list.iter().filter(|member| member.is_alive()).cloned().collect();
                if !alive.is_empty() || roll.starting == 0 {
                    return alive;
                }
            }
            arrived.await;
        }
    }

    /// The outcome of the first shutdown that came to one is that of all: a node ends once.
    pub(super) fn settle(&self, outcome: Stopped) -> Stopped {
        *self.roll().outcome.get_or_insert(outcome)
    }

    fn roll(&self) -> MutexGuard<'_, Roll> {
        self.0.roll.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn is_alive(&self) -> bool {
        self.cell.get_status() != ActorStatus::Stopped
    }
}

impl Place {
    /// The actor was started: it is a member before its place is free.
    pub(super) fn fill(self, member: Member) {
        let mut roll = self.0.roll();
        roll.list.retain(Member::is_alive);
        roll.list.push(member);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.roll().starting -= 1;
        self.0.0.arrived.notify_waiters();
    }
}
