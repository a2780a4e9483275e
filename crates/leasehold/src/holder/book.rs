//! The holder's state: where the term stands, and what must happen before its lease may be released.

mod handing;
mod parting;
mod quiescing;

pub(crate) use handing::HandMsg;

use handing::Handing;

use super::{HolderArgs, HolderMsg, Renewer, Settings, Stage, Tell, TermReport};
use crate::{
    context::Context,
    event::{Happening, WorkerOutcome},
    fenced::MAX_JUMP,
    renewer::{Berth, RenewerArgs, RenewerMsg},
    reply::Reply,
    standing::StandingFeed,
    term::Scope,
    watcher::WatcherMsg,
};
use leasehold_core::{
    Claim, Fence, LeaseRecord, LostCause, Moment, Note, Standing, TraceContext, handoff::incumbent,
};
use ractor::ActorRef;
use std::{sync::Arc, time::Duration};
use tokio::{sync::oneshot, task::AbortHandle, time::Instant};

pub(crate) struct Book {
    me: ActorRef<HolderMsg>,
    // Boxed: needed once, while the book is kept for a whole term.
    args: Option<Box<HolderArgs>>,
    ctx: Context,
    settings: Settings,
    scope: Arc<Scope>,
    standings: StandingFeed,
    pub(super) renewer: Option<ActorRef<RenewerMsg>>,
    berth: Arc<Berth>,
    tell: Option<Tell>,
    stage: Stage,
    asked_within: Duration,
    // When the worker's time to quiesce is over, in tokio's time, which the timer follows.
    quiesce_until: Option<Instant>,
    renewed_once: bool,
    last_called: bool,
    // Where it was asked that the term be given up: the release belongs there.
    leaving_in: TraceContext,
    begun: Moment,
    // Why the term is over, once that is decided.
    cause: Option<LostCause>,
    outcome: Option<WorkerOutcome>,
    joined: bool,
    told_joined: bool,
    note: Option<oneshot::Receiver<Option<Vec<u8>>>>,
    // What the worker left, once it has ended.
    left: Option<Note>,
    timer: Option<AbortHandle>,
    // From the first ask to hand over on.
    handing: Option<Box<Handing>>,
    started: Option<Reply<Fence>>,
    lost: Option<Reply<Fence>>,
    done: Option<Reply<TermReport>>,
}

impl Book {
    pub(super) fn open(me: ActorRef<HolderMsg>, mut args: HolderArgs) -> Self {
        let started = std::mem::replace(&mut args.started, Reply::new(drop));
        let lost = std::mem::replace(&mut args.lost, Reply::new(drop));
        let done = std::mem::replace(&mut args.done, Reply::new(drop));
        let told = me.clone();
        let claim = args.scope.grant.claim().clone();
        let _ = args.ctx.watcher.cast(WatcherMsg::Hold { claim, holder: me.clone() });
        args.scope.on_panic(move |message| drop(told.cast(HolderMsg::TaskPanicked { message })));
        Self {
            me,
            ctx: args.ctx.clone(),
            settings: args.settings.clone(),
            scope: args.scope.clone(),
            standings: args.standings.clone(),
            renewer: None,
            berth: Arc::new(Berth::default()),
            tell: None,
            stage: Stage::Leading,
            asked_within: Duration::ZERO,
            quiesce_until: None,
            renewed_once: false,
            last_called: false,
            leaving_in: TraceContext::NONE,
            begun: args.ctx.now(),
            cause: None,
            outcome: None,
            joined: false,
            told_joined: false,
            note: None,
            left: None,
            timer: None,
            handing: None,
            started: Some(started),
            lost: Some(lost),
            done: Some(done),
            args: Some(Box::new(args)),
        }
    }

    pub(super) fn renewer_to_be(&mut self) -> Option<(Renewer, RenewerArgs)> {
        let args = self.args.take()?;
        let renewer = Renewer::new(self.berth.clone(), args.scope.clone());
        let args = RenewerArgs {
            ctx: args.ctx,
            timing: args.settings.timing,
            scope: args.scope,
            crew: args.crew,
            holder: self.me.clone(),
            sent: args.sent,
            remaining: args.remaining,
            max_silence: args.settings.max_silence,
        };
        Some((renewer, args))
    }

    fn claim(&self) -> &Claim {
        self.scope.grant.claim()
    }

    fn event(&self, what: Happening) {
        self.ctx.events.tell(&self.claim().name, Some(self.claim().fence), what);
    }

    pub(super) fn mustered(&mut self, tell: Tell) {
        self.tell = Some(tell);
        if let Some(started) = self.started.take() {
            started.send(self.claim().fence);
        }
        match self.stage {
            // Asked to leave before there was anybody to ask.
            Stage::Quiescing => self.ask(self.asked_within),
            // Killed before there was anybody to kill (I4).
            Stage::Joining => self.berth.kill(),
            Stage::Leading | Stage::Ending | Stage::Releasing => {}
        }
    }

    pub(super) fn stood(&mut self, standing: Standing) {
        if self.cause.is_some() {
            // The end was told already: of what overtook this on its way, nothing is news any more.
            return;
        }
        match &standing {
            // The first is the grant itself.
            Standing::Held { .. } if !std::mem::replace(&mut self.renewed_once, true) => {}
            Standing::Held { until } => {
                self.event(Happening::Renewed { remaining: self.ctx.until(*until) });
            }
            Standing::Jeopardy { until, cause } => {
                let remaining = self.ctx.until(*until);
                self.event(Happening::Jeopardy { cause: cause.clone(), remaining });
            }
            // Told by us, not to us.
            Standing::HandingOver { .. } => {}
            // Usually the renewer's end came first, and told it. Not so while its worker is being joined.
            Standing::Lost { cause } => return self.lose(cause.clone()),
        }
        self.standings.tell(self.claim().fence, standing);
    }

    /// The store is asked at once, so that a forced release, or a rival after a crash that was none, is noticed before the
    /// next renewal is due. A sighting by itself ends nothing: it may be old news.
    pub(super) fn doubted(&mut self, record: Option<&LeaseRecord>) {
        if let Some(record) = record {
            self.sighted(record);
        }
        if let Some(renewer) = &self.renewer {
            let _ = renewer.cast(RenewerMsg::Doubt);
        }
    }

    /// Kills the worker if it still runs, and waits for its end.
    fn end_worker(&mut self) {
        self.stage = Stage::Joining;
        self.tell_ending();
        self.scope.abort_tasks();
        self.berth.kill();
        self.arm(self.settings.join_within, || HolderMsg::Overrun);
        self.proceed();
    }

    pub(super) fn overrun(&mut self) {
        if self.joined {
            return;
        }
        // It waits for the same join, and knows the end of that better than "lost".
        self.hand(incumbent::Event::Wake);
        let waited = self.settings.join_within;
        self.event(Happening::Overrun { waited });
        if self.settings.abort_on_overrun {
            // Asked for: better no process than one that works without its lease.
            std::process::abort();
        }
        self.lose(LostCause::Overrun);
        // No release before the join (I6), and no renewal for a worker that does not obey: the lease expires. Killing
        // the renewer is allowed, for the worker was killed already.
        if let Some(renewer) = &self.renewer {
            renewer.kill();
        }
    }

    pub(super) fn worker_ended(&mut self, outcome: WorkerOutcome) {
        self.outcome.get_or_insert(outcome);
        // The worker may have seen it first: its own check said no, and it gave up before the renewer's timer was due.
        match self.scope.grant.cause().cloned() {
            Some(cause) if cause.is_voluntary() => {}
            Some(cause) => self.lose(cause),
            None if self.scope.grant.remaining().is_zero() => self.lose(LostCause::Expired),
            None => {}
        }
        if matches!(self.stage, Stage::Leading | Stage::Quiescing) {
            // Its tasks go with it, and one that blocks its thread overruns like a worker that does.
            self.end_worker();
        } else {
            self.proceed();
        }
    }

    /// The term's work is not whole any more, and nobody would notice: it ends as if the worker itself had panicked.
    pub(super) fn task_panicked(&mut self, message: Arc<str>) {
        if matches!(self.stage, Stage::Leading | Stage::Quiescing) {
            self.outcome.get_or_insert(WorkerOutcome::Failed(message));
            // It failed: the kill takes no time from it that was promised (I4).
            self.end_worker();
        }
    }

    pub(super) fn worker_joined(&mut self, not_started: Option<Arc<str>>) {
        self.joined = true;
        if let Some(reason) = not_started {
            self.outcome.get_or_insert(WorkerOutcome::NotStarted(reason));
        }
        self.proceed();
    }

    pub(super) fn renewer_ended(&mut self) {
        self.renewer = None;
        if self.cause.is_none() && !matches!(self.stage, Stage::Ending | Stage::Releasing | Stage::Joining) {
            let cause = self.scope.grant.cause().cloned().unwrap_or(LostCause::RenewerEnded);
            self.lose(cause);
        }
        match self.stage {
            // The loss. The worker is dead or dying by structure; the explicit kill reaches one that was stopping (I5).
            Stage::Leading | Stage::Quiescing => self.end_worker(),
            Stage::Joining | Stage::Ending => self.proceed(),
            Stage::Releasing => {}
        }
    }

    /// Decides why the term is over, and tells everybody at once.
    fn lose(&mut self, cause: LostCause) {
        if self.cause.is_some() {
            return;
        }
        self.ctx.traces.lost(self.claim(), cause.as_str(), &self.scope.acquired_in);
        self.event(Happening::Lost { cause: cause.clone() });
        if let LostCause::Stale(stale) = &cause {
            // A resource knows a higher fence than the store issued: bid above it, and the system heals. Not above an
            // absurd one, or one damaged mark would use up the fences for good.
            if stale.highest.get().saturating_sub(self.claim().fence.get()) <= MAX_JUMP {
                self.ctx.floors.raise(&self.claim().name, Some(stale.highest));
            }
        }
        self.standings.tell(self.claim().fence, Standing::Lost { cause: cause.clone() });
        self.tell_ending();
        self.cause = Some(cause);
        self.hand(incumbent::Event::Lost);
    }

    /// Why the term is over, if nothing else happens before its end.
    fn ending(&self) -> LostCause {
        let otherwise = if self.last_called { LostCause::LastCall } else { LostCause::Released };
        self.cause.clone().unwrap_or(otherwise)
    }

    /// Nobody may read any more that we lead, however long the worker takes to end.
    fn tell_ending(&mut self) {
        if let Some(lost) = self.lost.take() {
            lost.send(self.claim().fence);
        }
    }

    /// The one gate: worker joined, then renewer ended, then release (I6).
    fn proceed(&mut self) {
        let never_started = self.renewer.is_none() && !self.berth.is_taken();
        if never_started {
            self.joined = true;
        }
        if !self.joined || self.stage == Stage::Releasing {
            return;
        }
        if !std::mem::replace(&mut self.told_joined, true) {
            self.hand(incumbent::Event::Joined);
        }
        match (&self.outcome, &self.renewer) {
            // The parent's word is on its way.
            (None, Some(_)) if self.stage != Stage::Joining => {}
            (_, Some(renewer)) => {
                if self.stage != Stage::Ending {
                    self.stage = Stage::Ending;
                    self.scope.grant.end(self.ending());
                    // The worker has been joined: nothing is left for the renewer to end (I6).
                    renewer.stop(None);
                }
            }
            (_, None) => self.release(),
        }
    }

    fn arm(&mut self, within: Duration, msg: fn() -> HolderMsg) {
        let timer = self.me.send_after(within, msg).abort_handle();
        if let Some(old) = self.timer.replace(timer) {
            old.abort();
        }
    }

    fn disarm(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        self.disarm();
        let Claim { name, attempt, .. } = self.claim().clone();
        let _ = self.ctx.watcher.cast(WatcherMsg::LetGo { name, attempt });
        if self.done.take().is_some() {
            // Killed with its tree, or by a panic: the worker is killed by structure (I5), the lease expires, and
            // whoever observes the term learns that it is over.
            if matches!(self.stage, Stage::Ending | Stage::Releasing) {
                self.told_over();
            } else {
                self.lose(LostCause::RenewerEnded);
            }
        }
    }
}
