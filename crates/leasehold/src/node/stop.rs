//! Ending a node, in order and within a bound.

use super::{members::Members, root::RootMsg};
use crate::{
    clerk::ClerkMsg,
    context::{Context, Shared},
    mailroom::MailroomMsg,
    reply::Reply,
    watcher::WatcherMsg,
};
use ractor::{ActorRef, ActorStatus};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

/// How a node, or an election, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "it says whether every lease was released"]
pub enum Stopped {
    /// In order: every worker had ended, and the store confirmed every release.
    Clean,
    /// Ended, but the store did not confirm every release in time. What it did not release expires within its ttl; after
    /// the stop of an election, its node goes on repeating the release until then.
    Unconfirmed,
    /// Not ended in order within its time. What a node still ran was killed; an election is still ending, or its worker
    /// blocks its thread, which nothing can end. Leases that were not released expire within their ttl.
    Killed,
}

pub(super) struct Parts {
    pub(super) ctx: Context,
    pub(super) root: ActorRef<RootMsg>,
    pub(super) members: Members,
    /// Whether no shutdown had begun before.
    pub(super) first: bool,
}

/// The most that is kept of a shutdown's time for joining and releasing.
const RESERVE: Duration = Duration::from_secs(2);

pub(super) async fn stop(parts: Parts, within: Duration) -> Stopped {
    let end = Instant::now() + within.min(leasehold_core::timing::MAX_TTL);
    if parts.first {
        // What was not confirmed before has expired, or is still repeated by the clerk; a shutdown that joins another one
        // forgets nothing.
        parts.ctx.unconfirmed.store(false, Ordering::SeqCst);
    }
    let quiesce = within - (within / 4).min(RESERVE);
    let in_order = timeout_at(end, in_order(&parts, quiesce)).await.is_ok();
    if in_order && !last_calls(&parts, end).await {
        parts.ctx.unconfirmed.store(true, Ordering::SeqCst);
    }
    let root = parts.root.get_cell();
    // A tree that broke down before its time has nobody left to wait for, and released nothing.
    let intact = root.get_status() < ActorStatus::Stopping;
    let outcome = match (in_order && intact, parts.ctx.unconfirmed.load(Ordering::SeqCst)) {
        (true, false) => Stopped::Clean,
        (true, true) => Stopped::Unconfirmed,
        (false, _) => Stopped::Killed,
    };
    // Settled before the root ends: whoever finds it ended knows how.
    let outcome = parts.members.settle(outcome);
    if in_order {
        root.stop(None);
    } else {
        // Out of time: the whole tree is killed. No lease is released by this, so none too early (I6); they expire.
        root.kill();
    }
    // The root has nothing to wait for in either case.
    let _ = root.wait(Some(Duration::from_secs(1))).await;
    outcome
}

async fn in_order(parts: &Parts, quiesce: Duration) {
    loop {
        // A start may have been under way: until nobody is left, and nobody is coming.
        let members = parts.members.alive().await;
        if members.is_empty() {
            break;
        }
        for member in &members {
            (member.stop)(quiesce);
        }
        for member in &members {
            let _ = member.cell.wait(None).await;
        }
    }
    // Nobody wants to know or to be known any more.
    let Shared { mailroom, watcher, .. } = &*parts.ctx;
    told(|done| mailroom.cast(MailroomMsg::Close { done }).is_ok()).await;
    told(|done| watcher.cast(WatcherMsg::Close { done }).is_ok()).await;
}

/// Has the clerk end its calls, for as long as time is left: a release that the store did not take yet is worth it, since
/// others wait for the ttl without. Whether the store knows of every release.
async fn last_calls(parts: &Parts, end: Instant) -> bool {
    let clerk = &parts.ctx.clerk;
    let closed = timeout_at(end, told(|done| clerk.cast(ClerkMsg::Close { done }).is_ok()));
    // One that is gone took the tree with it, which is not taken for an end in order.
    closed.await.is_ok_and(|settled| settled != Some(false))
}

/// Asks, and waits for the answer; an actor that is gone has nothing left to close.
async fn told<T: Send + 'static>(ask: impl FnOnce(Reply<T>) -> bool) -> Option<T> {
    let (answer, answered) = oneshot::channel();
    let asked = ask(Reply::new(move |told| drop(answer.send(told))));
    if asked { answered.await.ok() } else { None }
}
