//! Letting go of the term in somebody's favour: drives the [`Incumbent`], which decides.
//!
//! The machine says when the worker is asked, killed and joined, and in whose favour the lease is released; the book's one
//! gate (worker joined, renewer ended, release) stands as for any end of a term (I6).

use super::Book;
use crate::{
    event::Happening,
    handoff::{Asker, Handover, Told},
    holder::{HolderMsg, Stage},
    mailroom::MailroomMsg,
    reply::Reply,
    telemetry::Traces,
    worker::Notice,
};
use leasehold_core::{
    Candidacy, LeaseRecord, Moment, Release, ReplicaId, Standing, StoreError, TraceContext,
    handoff::{
        Ask, Ending, HandoffId, Incumbent, Letter, Otherwise, Plan, Step, To,
        incumbent::{Action, Answer, Event, Refusal},
        wire,
    },
};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{sync::oneshot, task::AbortHandle};
use tracing::Span;

/// What concerns a handoff.
#[derive(Debug)]
pub(crate) enum HandMsg {
    /// Somebody wants it.
    Asked {
        ask: Box<Ask>,
        asker: Asker,
    },
    Letter {
        from: ReplicaId,
        letter: Letter,
    },
    Roster(Option<Vec<ReplicaId>>),
    /// Time to read the roster once more.
    ReadRoster,
    Looked(Result<LeaseRecord, StoreError>),
    /// The worker goes on.
    Resumed,
    Wake,
}

/// From one look for candidates to the next, while there are none.
const READ_EVERY: Duration = Duration::from_millis(50);
/// How often to look again: for a second.
const READS: u32 = 20;

/// One handoff, or several asks for it.
pub(super) struct Handing {
    machine: Incumbent,
    id: HandoffId,
    by: Arc<str>,
    reason: Arc<str>,
    to: To,
    reads_left: u32,
    /// Whether nobody need hear of it yet: whoever leaves, and finds nobody to hand to, just releases.
    quiet: bool,
    askers: Vec<Asker>,
    begun: Moment,
    joined: Option<Moment>,
    /// In whose favour to release, and for how long.
    pub(super) heir: Option<(ReplicaId, Duration)>,
    /// The store's answer to the release. The term is reported once the handoff has ended, too.
    pub(super) answer: Option<Release>,
    pub(super) ending: Option<Ending>,
    timer: Option<AbortHandle>,
    span: Span,
    /// The span of the present step, if it has one.
    step: Option<Span>,
    // What happened while an event was being dealt with, in order.
    events: VecDeque<Event>,
    busy: bool,
}

impl Drop for Handing {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }
}

impl Book {
    pub(in crate::holder) fn handed(&mut self, msg: HandMsg) {
        match msg {
            HandMsg::Asked { ask, asker } => self.asked(*ask, asker),
            HandMsg::Letter { from, letter } => self.hand(Event::Letter { from, letter }),
            HandMsg::Roster(roster) => self.roster(roster),
            HandMsg::ReadRoster => self.read_roster(),
            HandMsg::Looked(Ok(record)) => self.sighted(&record),
            // Its time ends the wait.
            HandMsg::Looked(Err(_)) => {}
            HandMsg::Resumed => self.hand(Event::Resumed),
            HandMsg::Wake => self.hand(Event::Wake),
        }
    }

    pub(super) fn sighted(&mut self, record: &LeaseRecord) {
        self.hand(Event::Sighted(record.claim().map(|claim| (claim.replica.clone(), claim.fence))));
    }

    fn asked(&mut self, mut ask: Ask, mut asker: Asker) {
        if self.handing.is_none() {
            if self.stage != Stage::Leading || self.cause.is_some() {
                // It ends already, by itself or since its renewals fail. Of two times to quiesce the shorter counts.
                if ask.otherwise == Otherwise::Leave && self.stage == Stage::Quiescing {
                    self.quiesce_within(ask.within);
                }
                return asker.tell(Told::Refused(Refusal::Over));
            }
            self.handing = Some(Box::new(self.incumbent(&asker, &ask)));
        }
        let id = asker.id;
        if self.leaving_in == TraceContext::NONE {
            self.leaving_in = ask.trace.clone();
        }
        if let Some(handing) = &mut self.handing {
            // What follows belongs to the handoff, here and at the successor.
            let own = self.ctx.traces.of(&handing.span);
            if own.traceparent().is_some() {
                ask.trace = own;
            }
            let first = handing.askers.is_empty();
            handing.askers.push(asker);
            if first && !handing.quiet {
                self.tell_step(&Step::Asked(ask.to.clone()));
            }
        }
        self.hand(Event::Asked { id, ask });
    }

    fn incumbent(&self, asker: &Asker, ask: &Ask) -> Handing {
        let plan = self.settings.plan();
        let claim = self.claim();
        let span = self.ctx.traces.handoff(claim, asker.id, &ask.reason, &ask.trace);
        Handing {
            machine: Incumbent::new(claim.replica.clone(), claim.name.clone(), claim.fence, plan),
            id: asker.id,
            by: ask.by.clone(),
            reason: ask.reason.clone(),
            to: ask.to.clone(),
            reads_left: if ask.otherwise == Otherwise::LeadOn { READS } else { 0 },
            quiet: ask.otherwise == Otherwise::Leave,
            askers: Vec::new(),
            begun: self.ctx.now(),
            joined: None,
            heir: None,
            answer: None,
            ending: None,
            timer: None,
            span,
            step: None,
            events: VecDeque::new(),
            busy: false,
        }
    }

    /// Gives the machine an event, and does what it says.
    pub(super) fn hand(&mut self, event: Event) {
        let Some(handing) = &mut self.handing else { return };
        handing.events.push_back(event);
        if std::mem::replace(&mut handing.busy, true) {
            return;
        }
        while let Some(handing) = &mut self.handing
            && let Some(event) = handing.events.pop_front()
        {
            let todo = handing.machine.step(self.ctx.now(), event);
            todo.into_iter().for_each(|action| self.perform(action));
        }
        let Some(handing) = &mut self.handing else { return };
        handing.busy = false;
        match &handing.ending {
            Some(Ending::Aborted(_)) => {
                self.handing = None;
                self.leaving_in = TraceContext::NONE;
            }
            Some(_) => {
                if let Some(answer) = handing.answer.take() {
                    self.finish(Some(answer));
                }
            }
            None => {}
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::ReadRoster => self.read_roster(),
            Action::Send { to, letter } => {
                let envelope = wire::seal(&letter, &self.ctx.replica);
                let _ = self.ctx.mailroom.cast(MailroomMsg::Post { to, envelope });
            }
            Action::Quiesce { within } => {
                if self.quiesce_until.is_none() {
                    self.asked_within = within;
                    self.ask(within);
                }
                self.quiesce_within(within);
            }
            Action::Resume => self.resume(),
            Action::KillWorker => {
                if matches!(self.stage, Stage::Leading | Stage::Quiescing) {
                    // Its time is over, by its own agreement: the kill shortens nothing that was promised (I4).
                    self.scope.grant.end(self.ending());
                    self.end_worker();
                }
            }
            // The gate does.
            Action::EndRenewals => {}
            Action::Release { heir } => {
                if let Some(handing) = &mut self.handing {
                    handing.heir = heir;
                }
                if self.stage == Stage::Releasing {
                    self.send_release();
                }
            }
            Action::Look => self.look(),
            Action::Tell(step) => {
                if step == Step::Quiescing && self.stage == Stage::Leading {
                    self.stage = Stage::Quiescing;
                    if let Some(Handing { by, reason, .. }) = self.handing.as_deref() {
                        self.event(Happening::Quiescing { by: by.clone(), reason: reason.clone() });
                    }
                }
                if matches!(step, Step::Proposed(_)) {
                    self.speak_up();
                }
                self.tell_step(&step);
            }
            Action::Joins { .. } => {}
            Action::Refuse { id, why } => self.refuse(id, why),
            Action::WakeAt(at) => {
                let wake = || HolderMsg::Hand(HandMsg::Wake);
                let timer = self.me.send_after(self.ctx.until(at), wake).abort_handle();
                if let Some(old) = self.handing.as_mut().and_then(|handing| handing.timer.replace(timer)) {
                    old.abort();
                }
            }
            Action::End { ending, .. } => self.ended(ending),
        }
    }

    fn read_roster(&self) {
        let me = self.me.clone();
        let done = Reply::new(move |roster: Option<Vec<Candidacy>>| {
            let roster = roster.map(|line| line.into_iter().map(|c| c.replica).collect());
            let _ = me.cast(HolderMsg::Hand(HandMsg::Roster(roster)));
        });
        let name = self.claim().name.clone();
        let _ = self.ctx.mailroom.cast(MailroomMsg::Candidates { name, done });
    }

    /// A replica that has just led, or was just started, is in the roster a moment later. Whoever must leave has no time for
    /// that.
    fn roster(&mut self, roster: Option<Vec<ReplicaId>>) {
        if let Some(handing) = &mut self.handing
            && let Some(line) = &roster
            && !is_wanted(&handing.to, line, &self.ctx.replica)
            && handing.reads_left > 0
        {
            handing.reads_left -= 1;
            self.me.send_after(READ_EVERY, || HolderMsg::Hand(HandMsg::ReadRoster));
            return;
        }
        self.hand(Event::Roster(roster));
    }

    /// There is somebody to hand to: from here on it is told.
    fn speak_up(&mut self) {
        if let Some(handing) = &mut self.handing
            && std::mem::take(&mut handing.quiet)
        {
            let to = handing.to.clone();
            self.tell_step(&Step::Asked(to));
        }
    }

    fn tell_step(&mut self, step: &Step) {
        let now = self.ctx.now();
        let Some(handing) = &mut self.handing else { return };
        let elapsed = now.since(handing.begun);
        if *step == Step::Joined {
            handing.joined = Some(now);
        }
        if let Some(before) = std::mem::replace(&mut handing.step, Traces::handoff_step(&handing.span, step))
        {
            before.record("outcome", step.as_str());
            if let Step::Released(Some(heir)) = step {
                before.record("heir", heir.as_str());
            }
        }
        if let (Step::Joined, Some(commit)) = (step, &handing.step) {
            let commit = self.ctx.traces.of(commit);
            if commit.traceparent().is_some() {
                self.leaving_in = commit;
            }
        }
        handing.askers.iter_mut().for_each(|asker| asker.tell(Told::Step { step, elapsed }));
        let (id, quiet) = (handing.id, handing.quiet);
        if quiet {
            return;
        }
        if self.cause.is_none() {
            let grant = &self.scope.grant;
            let standing = Standing::HandingOver { until: grant.trusted_until(), step: step.clone() };
            self.standings.tell(grant.fence(), standing);
        }
        self.event(Happening::Handoff { id, step: step.clone(), elapsed, gap: None });
    }

    fn refuse(&mut self, id: HandoffId, why: Refusal) {
        let Some(handing) = &mut self.handing else { return };
        handing.askers.retain_mut(|asker| {
            if asker.id == id {
                asker.tell(Told::Refused(why));
            }
            asker.id != id
        });
    }

    fn ended(&mut self, ending: Ending) {
        let now = self.ctx.now();
        let Some(handing) = &mut self.handing else { return };
        let took = now.since(handing.begun);
        let joined = handing.joined.filter(|_| matches!(ending, Ending::Done { .. }));
        let gap = joined.map(|joined| now.since(joined));
        let handover = Handover { id: handing.id, ending: ending.clone(), took, gap };
        handing.askers.drain(..).for_each(|mut asker| asker.tell(Told::Ended(&handover)));
        handing.ending = Some(ending.clone());
        handing.step = None;
        handing.span.record("outcome", ending.as_str());
        if let Ending::Done { to, .. } = &ending {
            handing.span.record("to", to.as_str());
        }
        if let Some(gap) = gap {
            handing.span.record("gap_us", u64::try_from(gap.as_micros()).unwrap_or(u64::MAX));
        }
        let id = handing.id;
        if !handing.quiet {
            self.event(Happening::Handoff { id, step: Step::Ended(ending), elapsed: took, gap });
        }
    }

    /// The worker was asked to end, and shall go on after all.
    fn resume(&mut self) {
        if self.stage != Stage::Quiescing {
            return;
        }
        self.stage = Stage::Leading;
        self.quiesce_until = None;
        self.note = None;
        self.disarm();
        let Some(tell) = &self.tell else {
            // It was never asked.
            return self.hand(Event::Resumed);
        };
        let (done, resumed) = oneshot::channel();
        (tell.0)(Notice::Resume { done: done.into() });
        let me = self.me.clone();
        self.ctx.own.spawn(async move {
            if resumed.await.is_ok() {
                let _ = me.cast(HolderMsg::Hand(HandMsg::Resumed));
            }
        });
    }

    fn look(&self) {
        let me = self.me.clone();
        let done = Reply::new(move |looked| drop(me.cast(HolderMsg::Hand(HandMsg::Looked(looked)))));
        let (name, within) = (self.claim().name.clone(), Plan::default().answer);
        let _ = self.ctx.clerk.cast(crate::clerk::ClerkMsg::Look { name, within, done });
    }
}

pub(super) fn parted(answer: &Release) -> Event {
    Event::Parted(match answer {
        Release::Released => Answer::Released,
        Release::NotHolder(over) => Answer::NotHolder(over.holder.clone()),
        Release::Refused(_) => Answer::Refused,
        Release::Unknown(_) => Answer::Unknown,
    })
}

/// Whether somebody is in line who can be asked. Not to be waited for: itself.
fn is_wanted(to: &To, line: &[ReplicaId], me: &ReplicaId) -> bool {
    match to {
        To::Anyone => line.iter().any(|replica| replica != me),
        To::Replica(named) => named == me || line.contains(named),
    }
}
