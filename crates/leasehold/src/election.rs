//! The election: wants to lead for as long as the replica does, term after term.
//!
//! ```text
//! Campaigning ── won ──► Leading ── term over ──► Resting ── rested ──► Campaigning
//! ```

mod asking;
mod builder;
mod handle;
mod preferring;
mod resting;
mod succession;

pub use builder::{ElectError, ElectionBuilder};
pub use handle::{Election, Position};
pub(crate) use succession::WarmUp;

use crate::{
    candidate::{CampaignMsg, Candidate, Manner, Verdict, Win},
    context::Context,
    ended::ended,
    handoff::Asker,
    holder::{HolderArgs, HolderMsg, LeaseHolder, Settings, TermReport},
    mailroom::{MailroomMsg, Slot},
    reply::Reply,
    seed,
    standing::StandingFeed,
    worker::Crew,
};
use leasehold_core::{
    Candidacy, Envelope, Fence, TraceContext,
    backoff::Backoff,
    handoff::{Ask, Otherwise, Preference, To},
};
use preferring::Lookout;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use succession::{Succession, SuccessionMsg};
use tokio::{sync::watch, task::AbortHandle};

#[derive(Debug)]
pub(crate) enum ElectionMsg {
    Campaign(CampaignMsg),
    /// The term is over, and its worker has not ended yet.
    TermLost(Fence),
    TermEnded(TermReport),
    /// A holder has ended, and what it may have cast before is behind us.
    HolderEnded(ActorId),
    Rested,
    /// The worker of a term was started.
    TermStarted(Fence),
    /// Hand the present term over.
    HandOff {
        ask: Box<Ask>,
        asker: Asker,
    },
    /// A letter about this lease.
    Letter(Envelope),
    Succession(SuccessionMsg),
    /// Look whether somebody is preferred.
    LookAtLine,
    /// Who is in line, if that could be read.
    Line(Option<Vec<Candidacy>>),
    /// Give the present term up, and end.
    Stop {
        within: Duration,
        by: Arc<str>,
        reason: Arc<str>,
        /// Where it was asked for.
        trace: TraceContext,
    },
}

#[cfg(feature = "cluster")]
impl ractor::Message for ElectionMsg {}

pub(crate) struct ElectionArgs {
    pub(crate) ctx: Context,
    pub(crate) manner: Manner,
    pub(crate) settings: Settings,
    pub(crate) crew: Arc<dyn Crew>,
    pub(crate) standings: StandingFeed,
    pub(crate) position: watch::Sender<Position>,
    pub(crate) warm_up: Option<WarmUp>,
    pub(crate) preference: Option<Preference>,
    /// Set unless the last term's end was confirmed by the store.
    pub(crate) unconfirmed: Arc<AtomicBool>,
}

pub(crate) struct ElectionActor;

pub(crate) struct Electing {
    args: ElectionArgs,
    phase: Phase,
    succession: Succession,
    // While we lead.
    lookout: Option<Lookout>,
    // Our place among the mailroom's readers.
    id: u64,
    stopping: bool,
    // Asked to leave, and to let others lead.
    stepped_down: bool,
    // Grows while terms end at once, so that a worker that fails everywhere does not make leadership spin.
    rest: Backoff,
    timer: Option<AbortHandle>,
}

enum Phase {
    Campaigning(Box<Candidate<ElectionMsg>>),
    Leading(ActorRef<HolderMsg>),
    Resting,
}

/// A worker that ended at once is started again no sooner than this, at first.
const SHORTEST_REST: Duration = Duration::from_secs(1);
/// And no later than this, at last.
const LONGEST_REST: Duration = Duration::from_secs(60);

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for ElectionActor {
    type Msg = ElectionMsg;
    type State = Electing;
    type Arguments = ElectionArgs;

    async fn pre_start(
        &self,
        me: ActorRef<ElectionMsg>,
        args: ElectionArgs,
    ) -> Result<Electing, ActorProcessingErr> {
        // Random, for two replicas must not rest in step: in containers even their process ids are equal.
        let rest = Backoff::new(SHORTEST_REST, LONGEST_REST, seed::fresh());
        let (ctx, name) = (args.ctx.clone(), args.manner.name.clone());
        let succession = Succession::new(ctx, me, name, args.warm_up.clone());
        Ok(Electing {
            args,
            phase: Phase::Resting,
            succession,
            lookout: None,
            id: seed::fresh(),
            stopping: false,
            stepped_down: false,
            rest,
            timer: None,
        })
    }

    async fn post_start(
        &self,
        me: ActorRef<ElectionMsg>,
        s: &mut Electing,
    ) -> Result<(), ActorProcessingErr> {
        let (name, id, reader) = (s.args.manner.name.clone(), s.id, me.clone());
        let slot = Slot::new(move |letter| drop(reader.cast(ElectionMsg::Letter(letter))));
        let _ = s.args.ctx.mailroom.cast(MailroomMsg::Subscribe { name, id, slot });
        s.campaign(&me);
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<ElectionMsg>,
        msg: ElectionMsg,
        s: &mut Electing,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            ElectionMsg::Campaign(msg) => {
                let seen = match &msg {
                    CampaignMsg::Sighted(record) | CampaignMsg::Looked(Ok(record)) => Some(record.clone()),
                    _ => None,
                };
                // First: the bid that follows belongs to the handoff.
                if seen.is_some_and(|record| s.succession.sighted(record)) {
                    s.invited(&me).await?;
                }
                s.campaigned(&me, msg).await?;
            }
            ElectionMsg::TermStarted(fence) => {
                if let Some(at_least) = s.succession.started(fence) {
                    s.stay(at_least);
                }
            }
            ElectionMsg::LookAtLine => s.look_at_line(&me),
            ElectionMsg::Line(line) => s.line(&me, line),
            ElectionMsg::Letter(letter) => {
                if s.letter(letter) {
                    s.invited(&me).await?;
                }
            }
            ElectionMsg::Succession(msg) => {
                if s.succession.on(msg) {
                    s.invited(&me).await?;
                }
            }
            ElectionMsg::HandOff { ask, asker } => s.put(*ask, asker),
            ElectionMsg::TermLost(fence) => {
                if matches!(s.phase, Phase::Leading(_)) {
                    s.args.position.send_replace(Position::Ending(fence));
                }
            }
            ElectionMsg::TermEnded(report) => s.term_ended(&me, Some(&report)),
            ElectionMsg::HolderEnded(ended) => {
                // A holder reports before it ends. One that could not was killed or panicked, and its worker was killed
                // with it but not joined: its lease expires, and so does our right to campaign beside it.
                if matches!(&s.phase, Phase::Leading(holder) if holder.get_id() == ended) {
                    s.term_ended(&me, None);
                }
            }
            ElectionMsg::Rested => {
                if matches!(s.phase, Phase::Resting) {
                    s.campaign(&me);
                }
            }
            ElectionMsg::Stop { within, by, reason, trace } => {
                s.stopping = true;
                s.succession.on(SuccessionMsg::Unwilling("this replica is about to end".into()));
                match &s.phase {
                    Phase::Leading(_) => {
                        let otherwise = Otherwise::Leave;
                        let (to, stay) = (To::Anyone, Duration::ZERO);
                        let ask = Ask { to, within, otherwise, stay, by, reason, trace };
                        s.hand_off(ask, Asker::nobody());
                    }
                    Phase::Campaigning(_) | Phase::Resting => {
                        s.phase = Phase::Resting;
                        me.stop(None);
                    }
                }
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<ElectionMsg>,
        event: SupervisionEvent,
        _: &mut Electing,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(holder) = ended(event) {
            // Supervision overtakes messages: taken at its word, the end would come before the report of the term.
            me.cast(ElectionMsg::HolderEnded(holder))?;
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<ElectionMsg>, s: &mut Electing) -> Result<(), ActorProcessingErr> {
        // Drops the candidate now, wherever the state travels.
        s.phase = Phase::Resting;
        s.ended();
        Ok(())
    }
}

impl Electing {
    /// The election is over, whatever ended it.
    fn ended(&self) {
        self.args.position.send_if_modified(|position| {
            let over = matches!(position, Position::Failed(_) | Position::Stopped);
            if !over {
                *position = Position::Stopped;
            }
            !over
        });
    }

    fn campaign(&mut self, me: &ActorRef<ElectionMsg>) {
        // Only the first campaign is part of what called for the election; a later one may come months after.
        let trace = std::mem::take(&mut self.args.manner.trace);
        let manner = Manner { trace, ..self.args.manner.clone() };
        let candidate = Candidate::begin(self.args.ctx.clone(), me.clone(), ElectionMsg::Campaign, manner);
        self.phase = Phase::Campaigning(Box::new(candidate));
        self.args.unconfirmed.store(false, Ordering::SeqCst);
        self.args.position.send_replace(Position::Campaigning);
    }

    async fn campaigned(
        &mut self,
        me: &ActorRef<ElectionMsg>,
        msg: CampaignMsg,
    ) -> Result<(), ActorProcessingErr> {
        let Phase::Campaigning(candidate) = &mut self.phase else { return Ok(()) };
        match candidate.on(msg) {
            None => {}
            Some(Verdict::Won(win)) => self.lead(me, win).await?,
            Some(Verdict::Defeated(defeat)) => {
                self.args.position.send_replace(Position::Failed(defeat));
                me.stop(None);
            }
        }
        Ok(())
    }

    /// The lease is probably reserved for us.
    async fn invited(&mut self, me: &ActorRef<ElectionMsg>) -> Result<(), ActorProcessingErr> {
        let trace = self.succession.assume();
        match &self.phase {
            Phase::Campaigning(_) => self.campaigned(me, CampaignMsg::Invited(trace)).await?,
            // A campaign begins with a bid.
            Phase::Resting if !self.stopping => {
                self.args.manner.trace = trace;
                self.campaign(me);
            }
            Phase::Resting | Phase::Leading(_) => {}
        }
        Ok(())
    }

    async fn lead(&mut self, me: &ActorRef<ElectionMsg>, win: Win) -> Result<(), ActorProcessingErr> {
        let fence = win.scope.grant.fence();
        let (reporter, teller, starter) = (me.clone(), me.clone(), me.clone());
        let args = HolderArgs {
            ctx: self.args.ctx.clone(),
            settings: self.args.settings.clone(),
            scope: win.scope,
            crew: self.args.crew.clone(),
            standings: self.args.standings.clone(),
            sent: win.sent,
            remaining: win.remaining,
            started: Reply::new(move |fence| drop(starter.cast(ElectionMsg::TermStarted(fence)))),
            lost: Reply::new(move |fence| drop(teller.cast(ElectionMsg::TermLost(fence)))),
            done: Reply::new(move |report| drop(reporter.cast(ElectionMsg::TermEnded(report)))),
        };
        let (holder, _) = Actor::spawn_linked(None, LeaseHolder, args, me.get_cell()).await?;
        self.phase = Phase::Leading(holder);
        self.look_out(me);
        // Until the term's report says otherwise: it may be killed before it can tell.
        self.args.unconfirmed.store(true, Ordering::SeqCst);
        self.args.position.send_replace(Position::Leading(fence));
        Ok(())
    }

    fn term_ended(&mut self, me: &ActorRef<ElectionMsg>, report: Option<&TermReport>) {
        if !matches!(self.phase, Phase::Leading(_)) {
            return;
        }
        self.phase = Phase::Resting;
        self.lookout = None;
        self.args.unconfirmed.store(!report.is_some_and(TermReport::confirmed), Ordering::SeqCst);
        if self.stopping {
            me.stop(None);
            return;
        }
        let outcome = report.map(|r| r.worker.clone());
        self.args.position.send_replace(Position::Resting { last: outcome });
        let rest = self.rest_after(report);
        let timer = me.send_after(rest, || ElectionMsg::Rested).abort_handle();
        if let Some(old) = self.timer.replace(timer) {
            old.abort();
        }
    }
}

impl Drop for Electing {
    fn drop(&mut self) {
        let (name, id) = (self.args.manner.name.clone(), self.id);
        let _ = self.args.ctx.mailroom.cast(MailroomMsg::Unsubscribe { name, id });
        // Also when it was killed: nobody may read for ever that we lead.
        self.ended();
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }
}
