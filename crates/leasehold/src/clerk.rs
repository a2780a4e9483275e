//! The clerk makes all calls about leases to the store.
//!
//! It stands outside every subtree that may be killed: a call that was cut off in the middle may have been carried
//! out by the store all the same, so somebody must stay who finds out. Every call runs in a task of its own, is bounded
//! by its caller's time, and ends in one answer, whatever the store does.

mod desk;
mod overdue;
mod settle;

use crate::{event::Events, reply::Reply, telemetry::Traces};
use desk::Desk;
use leasehold_core::{
    Acquire, AttemptId, Bid, Claim, Clock, LeaseName, LeaseRecord, Moment, Parting, Release, Renew, Renewal,
    SharedStore, StoreError, TraceContext,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::{sync::Arc, time::Duration};

/// An answer to a bid, and when the bid was sent: trust counts from there.
#[derive(Debug)]
pub(crate) struct Acquired {
    pub(crate) sent: Moment,
    pub(crate) answer: Acquire,
    /// Where it was asked: the acquire's own context, which everything later in the term belongs or links to.
    pub(crate) trace: TraceContext,
}

#[derive(Debug)]
pub(crate) enum ClerkMsg {
    /// Ask for a lease.
    Acquire { bid: Bid, within: Duration, done: Reply<Acquired> },
    /// The task of an acquire ended.
    AcquireDone { attempt: AttemptId, acquired: Acquired },
    /// Nobody wants the result of this attempt any more: if it was or is granted, release it (I7). In the background; one
    /// whose outcome is unknown is looked for during 2 s, for its request may arrive late.
    Undo { name: LeaseName, attempt: AttemptId, ttl: Duration },
    /// Renew a claim, together with others that are due now.
    Renew { renewal: Renewal, within: Duration, done: Reply<Renew> },
    /// Send the renewals that gathered.
    Flush,
    /// End a claim. The caller has joined its worker (I6). Answered within `within`; what is not confirmed by then is
    /// repeated in the background for as long as the claim may live, at most `lives` from now.
    Release { claim: Claim, parting: Parting, within: Duration, lives: Duration, done: Reply<Release> },
    /// Read a record.
    Look { name: LeaseName, within: Duration, done: Reply<Result<LeaseRecord, StoreError>> },
    /// A task ended.
    TaskEnded,
    /// Take no more, and say when the last call has ended. What is being undone is looked for a last time, no sooner than
    /// 250 ms after it was given up; a release that is overdue is repeated at once, and then as long as that can help. The
    /// answer is whether the store knows of every release.
    Close { done: Reply<bool> },
}

#[cfg(feature = "cluster")]
impl ractor::Message for ClerkMsg {}

pub(crate) struct ClerkArgs {
    pub(crate) store: SharedStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: Events,
    pub(crate) traces: Traces,
}

pub(crate) struct Clerk;

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Clerk {
    type Msg = ClerkMsg;
    type State = Desk;
    type Arguments = ClerkArgs;

    async fn pre_start(&self, me: ActorRef<ClerkMsg>, args: ClerkArgs) -> Result<Desk, ActorProcessingErr> {
        Ok(Desk::new(me, args))
    }

    async fn handle(
        &self,
        me: ActorRef<ClerkMsg>,
        msg: ClerkMsg,
        desk: &mut Desk,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            ClerkMsg::Acquire { bid, within, done } => desk.acquire(bid, within, done),
            ClerkMsg::AcquireDone { attempt, acquired } => desk.acquire_done(attempt, acquired),
            ClerkMsg::Undo { name, attempt, ttl } => desk.undo(name, attempt, ttl),
            ClerkMsg::Renew { renewal, within, done } => {
                if desk.gather(renewal, within, done) {
                    // Everything that is in the mailbox already goes with it: what is due together travels together.
                    me.cast(ClerkMsg::Flush)?;
                }
            }
            ClerkMsg::Flush => desk.flush(),
            ClerkMsg::Release { claim, parting, within, lives, done } => {
                desk.release(claim, parting, within, lives, done);
            }
            ClerkMsg::Look { name, within, done } => desk.look(name, within, done),
            ClerkMsg::TaskEnded => desk.task_ended(),
            ClerkMsg::Close { done } => desk.close(done),
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<ClerkMsg>, desk: &mut Desk) -> Result<(), ActorProcessingErr> {
        // The state may travel on inside the supervision event; its tasks must not (I11).
        desk.abort();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<ClerkMsg>,
        _: SupervisionEvent,
        _: &mut Desk,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}
