//! A running election, in the hands of its user.

use super::ElectionMsg;
use crate::{
    event::WorkerOutcome,
    node::{Node, Stopped},
    standing::Standings,
};
use leasehold_core::{Fence, LeaseName, TraceContext, campaign::Defeat};
use ractor::ActorRef;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// Where a candidate stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Position {
    /// Wants to lead.
    Campaigning,
    /// Leads under this fence.
    Leading(Fence),
    /// Its term under this fence is over, and its worker has not ended yet: it is about to, or blocks its thread.
    Ending(Fence),
    /// Campaigns again after a pause.
    Resting {
        /// How the worker of its last term ended, where that is known.
        last: Option<WorkerOutcome>,
    },
    /// Has given up for good: the store can never be used like this.
    Failed(Defeat),
    /// Was stopped.
    Stopped,
}

/// A running election. Dropping it stops it in the background, as [`Election::stop`] with 5 s does.
#[derive(Debug)]
#[must_use = "dropping it stops the election; keep it"]
pub struct Election {
    node: Node,
    name: LeaseName,
    actor: ActorRef<ElectionMsg>,
    standings: Standings,
    position: watch::Receiver<Position>,
    longest_end: Duration,
    unconfirmed: Arc<AtomicBool>,
    stopped: bool,
}

/// How long a dropped election's worker may take to quiesce.
const DROPPED_WITHIN: Duration = Duration::from_secs(5);

impl Election {
    pub(super) fn new(
        node: &Node,
        name: LeaseName,
        actor: ActorRef<ElectionMsg>,
        standings: Standings,
        position: watch::Receiver<Position>,
        longest_end: Duration,
        unconfirmed: Arc<AtomicBool>,
    ) -> Self {
        let node = node.clone();
        Self { node, name, actor, standings, position, longest_end, unconfirmed, stopped: false }
    }

    /// The lease that is campaigned for.
    #[must_use]
    pub const fn name(&self) -> &LeaseName {
        &self.name
    }

    /// The fence under which this replica leads, if it does. For people and for readiness: it may be over by the time
    /// it is read. Work asks its own [`Term::check`](crate::Term::check).
    #[must_use]
    pub fn leading(&self) -> Option<Fence> {
        match *self.position.borrow() {
            Position::Leading(fence) => Some(fence),
            _ => None,
        }
    }

    /// Where this candidate stands, now and as it changes. Readers see the latest; for an ordered stream in which no
    /// loss is missing use [`Election::standings`].
    #[must_use]
    pub fn position(&self) -> watch::Receiver<Position> {
        self.position.clone()
    }

    /// The standings of all terms of this election, in order, with no `Lost` left out. One reader.
    pub const fn standings(&mut self) -> &mut Standings {
        &mut self.standings
    }

    /// Gives the present term up, if there is one, and campaigns again after one ttl, so that others may lead. The
    /// worker has `within` to quiesce, and is then dropped; the lease is released after it has ended.
    pub fn step_down(&self, within: Duration, reason: &str) {
        let trace = self.node.context().traces.here();
        let _ = self.actor.cast(ElectionMsg::StepDown { within, reason: reason.into(), trace });
    }

    /// Ends the election: the worker has `within` to quiesce, is then dropped, and the lease is released after it has
    /// ended. A bid under way is given up, and what it may have got is undone in the background.
    ///
    /// Takes at most `within` plus the times to join and to release. [`Stopped::Unconfirmed`] if the store did not
    /// confirm the release; [`Stopped::Killed`] if the election was still ending then, as with a worker that blocks its
    /// thread. The lease expires in both cases.
    ///
    /// Dropping the future stops nothing: the election still ends.
    pub async fn stop(mut self, within: Duration) -> Stopped {
        self.stopped = true;
        self.tell_to_stop(within, "stopped by its owner");
        let bound = within.saturating_add(self.longest_end);
        match self.actor.get_cell().wait(Some(bound)).await {
            Err(_) => Stopped::Killed,
            Ok(()) if self.unconfirmed.load(Ordering::SeqCst) => Stopped::Unconfirmed,
            Ok(()) => Stopped::Clean,
        }
    }

    fn tell_to_stop(&self, within: Duration, reason: &str) {
        let trace = self.node.context().traces.here();
        stop(&self.actor, within, self.node.replica().as_str(), reason, trace);
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        if !self.stopped {
            self.tell_to_stop(DROPPED_WITHIN, "its handle was dropped");
        }
    }
}

/// For the shutdown of its node.
pub(super) fn shut(actor: &ActorRef<ElectionMsg>, within: Duration) {
    stop(actor, within, "its node", "the node is shutting down", TraceContext::NONE);
}

fn stop(actor: &ActorRef<ElectionMsg>, within: Duration, by: &str, reason: &str, trace: TraceContext) {
    let _ = actor.cast(ElectionMsg::Stop { within, by: by.into(), reason: reason.into(), trace });
}
