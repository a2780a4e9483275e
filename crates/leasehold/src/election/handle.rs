//! A running election, in the hands of its user.

use super::{ElectionMsg, SuccessionMsg};
use crate::{
    event::WorkerOutcome,
    handoff::{Asker, HandOffError, Handover, Told},
    node::{Node, Stopped},
    standing::Standings,
};
use leasehold_core::{
    Fence, LeaseName, TraceContext,
    campaign::Defeat,
    handoff::{Ask, HandoffId, Otherwise, To},
};
use ractor::ActorRef;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{oneshot, watch};

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

    /// Gives the present term up, if there is one: in favour of a candidate that is ready, else to anyone, and then campaigns
    /// again after one ttl, so that others may lead; at once if somebody else leads already. Half of `within` at most is for finding a successor; the worker has
    /// what is left of it to quiesce, and is then dropped; the lease is released after it has ended.
    pub fn step_down(&self, within: Duration, reason: &str) {
        let ask = self.ask(To::Anyone, within, Otherwise::Leave, reason);
        let _ = self.actor.cast(ElectionMsg::HandOff { ask: Box::new(ask), asker: Asker::nobody() });
    }

    /// Hands leadership over to another candidate, with the note that the worker leaves: asks it to warm up, has the
    /// worker finish its unit, joins it, releases the lease in the other's favour, and waits until the other's worker was
    /// started. See `docs/handoff.md` for the protocol.
    ///
    /// `within` is the time for finding a successor and for the worker to finish; the join, the release and the taking over
    /// have bounds of their own (some seconds). If nobody is ready in time, this replica leads on. Once the worker has been
    /// asked to finish, it ends in any case, unless the successor withdraws before.
    ///
    /// Dropping the future stops nothing: the handoff goes on.
    ///
    /// # Errors
    /// [`HandOffError`] if it was not begun, for this replica does not lead, or a handoff to somebody else is under way; or
    /// if the election ended before it.
    pub async fn hand_off(&self, to: To, within: Duration, reason: &str) -> Result<Handover, HandOffError> {
        let name = || self.name.clone();
        if self.leading().is_none() {
            return Err(HandOffError::NotLeading { name: name() });
        }
        let (tell, told) = oneshot::channel();
        let mut tell = Some(tell);
        let asker = Asker::new(HandoffId::random(), move |news| {
            let answer = match news {
                Told::Step { .. } => return,
                Told::Refused(why) => Err(why),
                Told::Ended(handover) => Ok(handover.clone()),
            };
            if let Some(tell) = tell.take() {
                let _ = tell.send(answer);
            }
        });
        let ask = Box::new(self.ask(to, within, Otherwise::LeadOn, reason));
        let asked = self.actor.cast(ElectionMsg::HandOff { ask, asker });
        asked.map_err(|_| HandOffError::Stopped { name: name() })?;
        match told.await {
            Ok(Ok(handover)) => Ok(handover),
            Ok(Err(why)) => Err(HandOffError::Refused { name: name(), why }),
            Err(_) => Err(HandOffError::Stopped { name: name() }),
        }
    }

    /// From now on this candidate declines to take over when it is asked; `why` is for people to read. It still campaigns
    /// for a lease that nobody holds.
    pub fn decline(&self, why: &str) {
        let _ = self.actor.cast(ElectionMsg::Succession(SuccessionMsg::Unwilling(why.into())));
    }

    /// From now on this candidate takes over when it is asked, as in the beginning.
    pub fn accept(&self) {
        let _ = self.actor.cast(ElectionMsg::Succession(SuccessionMsg::Willing));
    }

    fn ask(&self, to: To, within: Duration, otherwise: Otherwise, reason: &str) -> Ask {
        let trace = self.node.context().traces.here();
        let by = self.node.replica().as_str().into();
        // How long it stays there is for the election to say.
        Ask { to, within, otherwise, stay: Duration::ZERO, by, reason: reason.into(), trace }
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
