//! A candidate: one campaign, driven for the actor that owns it.
//!
//! It is a part of an actor, not an actor: the election and the one-off seeker both have one, and give it the messages
//! that are meant for it.

use crate::{
    clerk::{Acquired, ClerkMsg},
    context::Context,
    event::Happening,
    mailroom::{MailroomMsg, RankedEar},
    reply::Reply,
    seed,
    term::Scope,
    watcher::{Ear, WatcherMsg},
};
use leasehold_core::{
    Acquire, AttemptId, Bid, Candidacy, Fence, Granted, Keeper, LeaseName, LeaseRecord, Moment, StoreError,
    Timing, TraceContext,
    campaign::{Action, Answer, Campaign, Defeat, Event, Patience, Wish},
};
use ractor::ActorRef;
use std::{sync::Arc, time::Duration};
use tokio::task::AbortHandle;

/// What concerns a campaign.
#[derive(Debug)]
pub(crate) enum CampaignMsg {
    Wake,
    Answered(Acquired),
    Sighted(LeaseRecord),
    Looked(Result<LeaseRecord, StoreError>),
    Ranked(usize),
    /// The holder has let go in our favour. What follows belongs to that handoff.
    Invited(TraceContext),
}

/// How a campaign ended.
pub(crate) enum Verdict {
    Won(Win),
    Defeated(Defeat),
}

/// A lease that was won, ready for a holder.
pub(crate) struct Win {
    pub(crate) sent: Moment,
    pub(crate) remaining: Duration,
    pub(crate) scope: Arc<Scope>,
}

/// How to campaign.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    pub(crate) name: LeaseName,
    pub(crate) timing: Timing,
    pub(crate) patience: Patience,
    pub(crate) priority: i32,
    pub(crate) crash_witness: bool,
    pub(crate) trace: TraceContext,
}

/// The longest that one bid is waited for, however long the ttl.
const LONGEST_BID: Duration = Duration::from_secs(10);
/// The longest that one look is waited for.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

pub(crate) struct Candidate<M: ractor::Message> {
    ctx: Context,
    me: ActorRef<M>,
    wrap: fn(CampaignMsg) -> M,
    manner: Manner,
    // Identifies the candidacy in the roster and at the watcher.
    id: AttemptId,
    campaign: Campaign,
    /// The attempt whose fate we answer for.
    attempt: Option<AttemptId>,
    /// The context of the last bid that was answered.
    acquired_in: TraceContext,
    enlisted: bool,
    timer: Option<AbortHandle>,
    begun: Moment,
}

impl<M: ractor::Message> Candidate<M> {
    pub(crate) fn begin(ctx: Context, me: ActorRef<M>, wrap: fn(CampaignMsg) -> M, manner: Manner) -> Self {
        let id = AttemptId::random();
        let (campaign, todo) = Campaign::begin(Wish {
            me: ctx.replica.clone(),
            timing: manner.timing,
            patience: manner.patience,
            // To hear of a winner takes one wake-up; twice that keeps the order under load.
            stride: ctx.store.traits().wake_up * 2,
            floor: ctx.floors.get(&manner.name),
            seed: seed::of(id),
        });
        ctx.events.tell(&manner.name, None, Happening::Campaigning);
        let begun = ctx.now();
        let mut candidate = Self {
            ctx,
            me,
            wrap,
            manner,
            id,
            campaign,
            attempt: None,
            acquired_in: TraceContext::NONE,
            enlisted: false,
            timer: None,
            begun,
        };
        let _ = candidate.perform(todo);
        candidate
    }

    pub(crate) fn on(&mut self, msg: CampaignMsg) -> Option<Verdict> {
        let event = match msg {
            CampaignMsg::Wake => Event::Wake,
            CampaignMsg::Answered(Acquired { sent, answer, trace }) => {
                self.acquired_in = trace;
                let answer = match answer {
                    Acquire::Granted(granted) => Answer::Granted(granted),
                    Acquire::Held(held) => Answer::Held(held),
                    Acquire::Refused(error) => Answer::Refused(error),
                    Acquire::Unknown(error) => Answer::Unknown(error),
                };
                Event::Answered { sent, answer }
            }
            CampaignMsg::Sighted(record) | CampaignMsg::Looked(Ok(record)) => Event::Sighted(record),
            CampaignMsg::Looked(Err(error)) => Event::LookFailed(error),
            CampaignMsg::Ranked(before) => Event::Ranked(before),
            CampaignMsg::Invited(trace) => {
                if trace != TraceContext::NONE {
                    self.manner.trace = trace;
                }
                Event::Invited
            }
        };
        let todo = self.campaign.step(self.ctx.now(), event);
        self.ctx.floors.raise(&self.manner.name, self.campaign.floor());
        self.perform(todo)
    }

    fn perform(&mut self, todo: Vec<Action>) -> Option<Verdict> {
        let mut verdict = None;
        for action in todo {
            match action {
                Action::Bid { fresh, floor } => self.bid(fresh, floor),
                Action::Look => {
                    let within = LONGEST_LOOK.min(self.manner.timing.ttl().max(Duration::from_secs(1)));
                    let done = self.reply(CampaignMsg::Looked);
                    let _ =
                        self.ctx.clerk.cast(ClerkMsg::Look { name: self.manner.name.clone(), within, done });
                }
                Action::Enlist => self.enlist(),
                Action::WakeAt(at) => {
                    let wrap = self.wrap;
                    let timer = self
                        .me
                        .send_after(self.ctx.until(at), move || wrap(CampaignMsg::Wake))
                        .abort_handle();
                    if let Some(old) = self.timer.replace(timer) {
                        old.abort();
                    }
                }
                Action::Undo => self.undo(),
                Action::Won { sent, granted } => verdict = Some(Verdict::Won(self.won(sent, granted))),
                Action::GiveUp(defeat) => verdict = Some(Verdict::Defeated(defeat)),
            }
        }
        verdict
    }

    fn bid(&mut self, fresh: bool, floor: Option<Fence>) {
        let attempt = match self.attempt {
            Some(attempt) if !fresh => attempt,
            _ => AttemptId::random(),
        };
        self.attempt = Some(attempt);
        let bid = Bid {
            name: self.manner.name.clone(),
            replica: self.ctx.replica.clone(),
            attempt,
            ttl: self.manner.timing.ttl(),
            floor: floor.max(self.ctx.floors.get(&self.manner.name)),
            crash_witness: self.manner.crash_witness,
            trace: self.manner.trace.clone(),
        };
        let within = self.manner.timing.trust().min(LONGEST_BID);
        let done = self.reply(CampaignMsg::Answered);
        let _ = self.ctx.clerk.cast(ClerkMsg::Acquire { bid, within, done });
    }

    fn enlist(&mut self) {
        self.enlisted = true;
        let candidacy = Candidacy {
            name: self.manner.name.clone(),
            replica: self.ctx.replica.clone(),
            id: self.id,
            priority: self.manner.priority,
        };
        let (me, wrap) = (self.me.clone(), self.wrap);
        let ranked = RankedEar::new(move |before| drop(me.cast(wrap(CampaignMsg::Ranked(before)))));
        let ttl = self.manner.timing.ttl();
        let _ = self.ctx.mailroom.cast(MailroomMsg::Enlist { candidacy, ttl, ranked });
        let (me, wrap) = (self.me.clone(), self.wrap);
        let ear = Ear::new(move |record| drop(me.cast(wrap(CampaignMsg::Sighted(record)))));
        let (id, name) = (seed::of(self.id), self.manner.name.clone());
        let _ = self.ctx.watcher.cast(WatcherMsg::Subscribe { id, name, ear });
    }

    fn undo(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            let (name, ttl) = (self.manner.name.clone(), self.manner.timing.ttl());
            let _ = self.ctx.clerk.cast(ClerkMsg::Undo { name, attempt, ttl });
        }
    }

    fn won(&mut self, sent: Moment, granted: Granted) -> Win {
        // From here on the holder answers for the attempt.
        self.attempt = None;
        let Granted { claim, remaining, predecessor, inherited } = granted;
        let trusted_until = self.manner.timing.trusted_until(sent, remaining);
        let now = self.ctx.now();
        self.ctx.events.tell(
            &claim.name,
            Some(claim.fence),
            Happening::Acquired {
                predecessor: predecessor.clone(),
                waited: now.since(self.begun),
                trusted: trusted_until.since(now),
            },
        );
        let grant = Keeper::new(claim, trusted_until, self.ctx.clock.clone());
        let trace = std::mem::take(&mut self.acquired_in);
        let (clock, app) = (self.ctx.clock.clone(), self.ctx.app.clone());
        Win { sent, remaining, scope: Arc::new(Scope::new(grant, predecessor, inherited, trace, clock, app)) }
    }

    fn reply<T: Send + 'static>(&self, fact: fn(T) -> CampaignMsg) -> Reply<T> {
        let (me, wrap) = (self.me.clone(), self.wrap);
        Reply::new(move |answer| drop(me.cast(wrap(fact(answer)))))
    }
}

/// Whatever ends the campaign, nothing of it stays: no attempt, no roster entry, no subscription, no timer (I7, I11).
impl<M: ractor::Message> Drop for Candidate<M> {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
        // Settled attempts left nothing in the store; asking is harmless, but costs a read.
        if self.campaign.is_unsettled() {
            self.undo();
        }
        if self.enlisted {
            let _ = self.ctx.mailroom.cast(MailroomMsg::Withdraw { id: self.id });
            let (id, name) = (seed::of(self.id), self.manner.name.clone());
            let _ = self.ctx.watcher.cast(WatcherMsg::Unsubscribe { id, name });
        }
    }
}
