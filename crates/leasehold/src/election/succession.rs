//! Taking over from somebody who lets go: drives the [`Successor`], which decides.

use super::ElectionMsg;
use crate::{
    context::Context, event::Happening, mailroom::MailroomMsg, telemetry, term::panic_text, worker::BoxError,
};
use futures_util::FutureExt;
use leasehold_core::{
    Fence, LeaseName, LeaseRecord, Moment, ReplicaId, TraceContext,
    handoff::{
        HandoffId, Letter, Message, Step, Successor,
        successor::{Action, Event},
        wire,
    },
};
use ractor::ActorRef;
use std::{fmt, panic::AssertUnwindSafe, pin::Pin, sync::Arc, time::Duration};
use tokio::{task::AbortHandle, time::timeout};
use tracing::{Instrument, Span};

/// What a replica does before it says that it is ready to lead.
#[derive(Clone)]
pub(crate) struct WarmUp(Arc<WarmUpFn>);

type WarmUpFn = dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>> + Send + Sync;

impl WarmUp {
    pub(crate) fn new<F, Fut>(warm_up: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(warm_up())))
    }
}

impl fmt::Debug for WarmUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WarmUp")
    }
}

/// What concerns a succession.
#[derive(Debug)]
pub(crate) enum SuccessionMsg {
    Wake,
    Warmed { handoff: HandoffId, warm: Result<(), Arc<str>> },
    Willing,
    Unwilling(Arc<str>),
}

pub(super) struct Succession {
    ctx: Context,
    me: ActorRef<ElectionMsg>,
    name: LeaseName,
    machine: Successor,
    warm_up: Option<WarmUp>,
    warming: Option<AbortHandle>,
    timer: Option<AbortHandle>,
    /// The incumbent that asked last, and when it did.
    asked: Option<(ReplicaId, Moment)>,
    stay: Option<Duration>,
    /// Where the handoff belongs that it takes part in.
    trace: TraceContext,
    /// From the news that we may lead until our worker was started.
    assuming: Option<Span>,
}

/// Whether the campaign should bid at once.
pub(super) type Bid = bool;

impl Succession {
    pub(super) fn new(
        ctx: Context,
        me: ActorRef<ElectionMsg>,
        name: LeaseName,
        warm_up: Option<WarmUp>,
    ) -> Self {
        let machine = Successor::new(ctx.replica.clone(), name.clone());
        Self {
            ctx,
            me,
            name,
            machine,
            warm_up,
            warming: None,
            timer: None,
            asked: None,
            stay: None,
            trace: TraceContext::NONE,
            assuming: None,
        }
    }

    pub(super) fn on(&mut self, msg: SuccessionMsg) -> Bid {
        self.step(match msg {
            SuccessionMsg::Wake => Event::Wake,
            SuccessionMsg::Warmed { handoff, warm: Ok(()) } => Event::WarmedUp(handoff),
            SuccessionMsg::Warmed { handoff, warm: Err(why) } => Event::Unfit { handoff, why },
            SuccessionMsg::Willing => Event::Willing,
            SuccessionMsg::Unwilling(why) => Event::Unwilling { why },
        })
    }

    pub(super) fn letter(&mut self, from: ReplicaId, letter: Letter) -> Bid {
        if matches!(letter.message, Message::Propose { .. }) && self.machine.handoff() != Some(letter.handoff)
        {
            self.asked = Some((from.clone(), self.ctx.now()));
        }
        if matches!(letter.message, Message::Propose { .. } | Message::Yours) {
            self.trace = letter.trace.clone();
        }
        self.step(Event::Letter { from, letter })
    }

    pub(super) fn sighted(&mut self, record: LeaseRecord) -> Bid {
        self.step(Event::Sighted(record))
    }

    /// Our worker was started under this fence. How long leadership is to stay here, if it was put here on purpose.
    pub(super) fn started(&mut self, fence: Fence) -> Option<Duration> {
        self.step(Event::Granted(fence));
        if let Some(assuming) = self.assuming.take() {
            assuming.record("fence", fence.get());
        }
        self.trace = TraceContext::NONE;
        self.stay.take()
    }

    /// Where the bid belongs that takes over.
    pub(super) fn assume(&mut self) -> TraceContext {
        if self.trace == TraceContext::NONE {
            return TraceContext::NONE;
        }
        let (traces, trace, name) = (&self.ctx.traces, &self.trace, &self.name);
        traces.of(self.assuming.get_or_insert_with(|| traces.assume(name, trace)))
    }

    fn step(&mut self, event: Event) -> Bid {
        let mut bid = false;
        let mut todo = self.machine.step(self.ctx.now(), event);
        while !todo.is_empty() {
            let mut more = Vec::new();
            for action in todo {
                match action {
                    Action::WarmUp { handoff, within, .. } => {
                        self.tell(handoff, Step::WarmingUp);
                        if !self.warm(handoff, within) {
                            more.extend(self.machine.step(self.ctx.now(), Event::WarmedUp(handoff)));
                        }
                    }
                    Action::StandDown { handoff } => {
                        self.cool();
                        self.trace = TraceContext::NONE;
                        self.assuming = None;
                        self.tell(handoff, Step::StoodDown);
                    }
                    Action::Bid => bid = true,
                    Action::Stay { at_least } => self.stay = Some(at_least),
                    Action::Send { to, letter } => self.send(to, &letter),
                    Action::WakeAt(at) => {
                        let wake = || ElectionMsg::Succession(SuccessionMsg::Wake);
                        let timer = self.me.send_after(self.ctx.until(at), wake).abort_handle();
                        if let Some(old) = self.timer.replace(timer) {
                            old.abort();
                        }
                    }
                }
            }
            todo = more;
        }
        bid
    }

    /// Whether there is anything to warm up.
    fn warm(&mut self, handoff: HandoffId, within: Duration) -> bool {
        self.cool();
        let Some(WarmUp(warm_up)) = self.warm_up.clone() else { return false };
        let me = self.me.clone();
        let span = self.ctx.traces.warm_up(&self.name, handoff, &self.trace);
        let outcome = span.clone();
        let work = async move {
            let warming = AssertUnwindSafe(async { warm_up().await }).catch_unwind();
            let warm = match timeout(within, warming).await {
                Ok(Ok(Ok(()))) => Ok(()),
                Ok(Ok(Err(error))) => Err(error.to_string().into()),
                Ok(Err(panic)) => Err(panic_text("the warm-up", &*panic)),
                Err(_) => Err("the warm-up took too long".into()),
            };
            outcome.record("outcome", if warm.is_ok() { "warm" } else { "unfit" });
            let _ = me.cast(ElectionMsg::Succession(SuccessionMsg::Warmed { handoff, warm }));
        };
        let task = self.ctx.app.spawn(work.instrument(span));
        self.warming = Some(task.abort_handle());
        true
    }

    fn cool(&mut self) {
        if let Some(warming) = self.warming.take() {
            warming.abort();
        }
    }

    fn send(&self, to: ReplicaId, letter: &Letter) {
        match &letter.message {
            Message::Ready => self.tell(letter.handoff, Step::WarmedUp),
            Message::Decline { why } => {
                let why = why.clone();
                self.tell(letter.handoff, |from| Step::Declining(from, why));
            }
            Message::Assumed { .. } => self.tell(letter.handoff, Step::Assumed),
            _ => {}
        }
        let envelope = wire::seal(letter, &self.ctx.replica);
        if self.ctx.mailroom.cast(MailroomMsg::Post { to, envelope }).is_err() {
            telemetry::letter_unsent(&self.name);
        }
    }

    fn tell(&self, id: HandoffId, step: impl FnOnce(ReplicaId) -> Step) {
        let Some((from, at)) = &self.asked else { return };
        let elapsed = self.ctx.now().since(*at);
        let what = Happening::Handoff { id, step: step(from.clone()), elapsed, gap: None };
        self.ctx.events.tell(&self.name, None, what);
    }
}

impl Drop for Succession {
    fn drop(&mut self) {
        self.cool();
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }
}
