//! The seeker: campaigns once, puts the lease into a holder's hands, and ends.

use super::Leaving;
use crate::{
    candidate::{CampaignMsg, Candidate, Manner, Verdict, Win},
    clerk::ClerkMsg,
    holder::{HolderArgs, HolderMsg, LeaseHolder, Settings, TermReport},
    node::Node,
    reply::Reply,
    standing::StandingFeed,
    worker::Crew,
};
use leasehold_core::{TraceContext, campaign::Defeat};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A lease in a holder's hands.
pub(super) struct Found {
    // From here on: a find may be dropped on its way, unseen by whoever just stopped waiting for it (B78).
    pub(super) holding: Leaving,
    pub(super) report: oneshot::Receiver<TermReport>,
}

pub(super) struct SeekerArgs {
    pub(super) node: Node,
    pub(super) manner: Manner,
    pub(super) settings: Settings,
    pub(super) crew: Arc<dyn Crew>,
    pub(super) standings: StandingFeed,
    pub(super) found: oneshot::Sender<Result<Found, Defeat>>,
}

pub(super) type SeekerMsg = CampaignMsg;

#[cfg(feature = "cluster")]
impl ractor::Message for CampaignMsg {}

pub(super) struct Seeker;

pub(super) struct Seeking {
    args: Option<SeekerArgs>,
    candidate: Option<Candidate<SeekerMsg>>,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Seeker {
    type Msg = SeekerMsg;
    type State = Seeking;
    type Arguments = SeekerArgs;

    async fn pre_start(
        &self,
        _: ActorRef<SeekerMsg>,
        args: SeekerArgs,
    ) -> Result<Seeking, ActorProcessingErr> {
        Ok(Seeking { args: Some(args), candidate: None })
    }

    /// The campaign begins here and not before: a `pre_start` has effects even if the spawn is refused.
    async fn post_start(&self, me: ActorRef<SeekerMsg>, s: &mut Seeking) -> Result<(), ActorProcessingErr> {
        s.candidate = s
            .args
            .as_ref()
            .map(|args| Candidate::begin(args.node.context().clone(), me, |msg| msg, args.manner.clone()));
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<SeekerMsg>,
        msg: SeekerMsg,
        s: &mut Seeking,
    ) -> Result<(), ActorProcessingErr> {
        let Some(verdict) = s.candidate.as_mut().and_then(|candidate| candidate.on(msg)) else {
            return Ok(());
        };
        s.candidate = None;
        if let Some(args) = s.args.take() {
            match verdict {
                Verdict::Won(win) => hand_over(args, win).await,
                Verdict::Defeated(defeat) => drop(args.found.send(Err(defeat))),
            }
        }
        me.stop(None);
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<SeekerMsg>, s: &mut Seeking) -> Result<(), ActorProcessingErr> {
        s.candidate = None;
        Ok(())
    }
}

/// The holder stands below the node, not below the seeker, which ends here.
async fn hand_over(args: SeekerArgs, win: Win) {
    let SeekerArgs { node, settings, crew, standings, found, .. } = args;
    let (done, report) = oneshot::channel();
    let claim = win.scope.grant.claim();
    let (name, attempt, ttl) = (claim.name.clone(), claim.attempt, settings.timing.ttl());
    let undo = ClerkMsg::Undo { name, attempt, ttl };
    let args = HolderArgs {
        ctx: node.context().clone(),
        settings,
        scope: win.scope,
        crew,
        standings,
        sent: win.sent,
        remaining: win.remaining,
        started: Reply::new(drop),
        // Told with the result.
        lost: Reply::new(drop),
        done: Reply::new(move |report| drop(done.send(report))),
    };
    let leave = |holder: &ActorRef<HolderMsg>, within| {
        let (by, reason) = ("its node".into(), "the node is shutting down".into());
        let _ = holder.cast(HolderMsg::Leave { within, by, reason, trace: TraceContext::NONE });
    };
    let Ok(holder) = node.enrol(LeaseHolder, args, leave).await else {
        // A node that is shutting down starts no holder: nobody will use the claim (I7).
        let _ = node.context().clerk.cast(undo);
        return;
    };
    // If whoever wanted it has gone in the meantime, the find is dropped, and with it the lease is left.
    drop(found.send(Ok(Found { holding: Leaving::holder(holder), report })));
}
