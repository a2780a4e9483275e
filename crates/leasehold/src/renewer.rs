//! The renewer keeps a claim alive, one renewal at a time, and is the worker's parent.
//!
//! Its end is the loss. Whatever ends it (a refusal, the deadline, a panic, a kill) ends the worker by structure: ractor
//! kills an actor's children inside its lifecycle guard (I5). The deadline is enforced here without any answer from
//! the store (I4).

mod berth;

pub(crate) use berth::{Berth, Leash};

use crate::{
    context::Context,
    event::{Happening, WorkerOutcome},
    holder::{HolderMsg, Tell},
    reply::Reply,
    seed,
    term::{Scope, Term},
    worker::{Crew, Mustered, Notice, Pulse},
};
use leasehold_core::{
    Moment, Renew, Renewal, Stale, Standing, Timing,
    tenure::{Action, Answer, Event, Tenure},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::{sync::Arc, time::Duration};
use tokio::task::AbortHandle;

/// No longer than this without a look at the clock: timers stand still while the machine is suspended, and trust does
/// not (B03). The worker would otherwise live on after the resume for as long as the timer had left.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) enum RenewerMsg {
    /// Something may be due.
    Wake,
    /// The store answered the renewal sent at `sent`.
    Answered { sent: Moment, answer: Renew },
    /// A fenced resource has accepted a higher fence.
    Outranked(Stale),
    /// Something was seen that casts doubt on the claim: ask the store now.
    Doubt,
}

#[cfg(feature = "cluster")]
impl ractor::Message for RenewerMsg {}

pub(crate) struct RenewerArgs {
    pub(crate) ctx: Context,
    pub(crate) timing: Timing,
    pub(crate) scope: Arc<Scope>,
    pub(crate) crew: Arc<dyn Crew>,
    pub(crate) holder: ActorRef<HolderMsg>,
    /// When the granted bid was sent.
    pub(crate) sent: Moment,
    /// What the store said is left.
    pub(crate) remaining: Duration,
    /// Renew only while the worker gave a pulse within this time.
    pub(crate) max_silence: Option<Duration>,
}

pub(crate) struct Renewer {
    // In the handler, not in the state: the handler is dropped with the actor's task, whatever ended it, while a state
    // may travel on in a supervision event.
    leash: Leash,
}

impl Renewer {
    pub(crate) const fn new(berth: Arc<Berth>, scope: Arc<Scope>) -> Self {
        Self { leash: Leash::new(berth, scope) }
    }
}

pub(crate) struct Renewing {
    args: RenewerArgs,
    tenure: Tenure,
    begun: Vec<Action>,
    timer: Option<AbortHandle>,
    tell: Option<Arc<dyn Fn(Notice) + Send + Sync>>,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Renewer {
    type Msg = RenewerMsg;
    type State = Renewing;
    type Arguments = RenewerArgs;

    async fn pre_start(
        &self,
        me: ActorRef<RenewerMsg>,
        args: RenewerArgs,
    ) -> Result<Renewing, ActorProcessingErr> {
        let seed = seed::of(args.scope.grant.claim().attempt);
        let (tenure, begun) = Tenure::begin(args.timing, args.sent, args.remaining, args.ctx.now(), seed);
        let tenure = match args.max_silence {
            Some(max) => tenure.gated(max),
            None => tenure,
        };
        args.scope.on_outranked(move |stale| drop(me.cast(RenewerMsg::Outranked(stale))));
        Ok(Renewing { args, tenure, begun, timer: None, tell: None })
    }

    /// The worker is mustered here and not before: a `pre_start` has effects even if the spawn is refused.
    async fn post_start(&self, me: ActorRef<RenewerMsg>, s: &mut Renewing) -> Result<(), ActorProcessingErr> {
        let begun = std::mem::take(&mut s.begun);
        if !s.tenure.is_over() {
            s.muster(&me, &self.leash);
        }
        s.perform(&me, begun)
    }

    async fn handle(
        &self,
        me: ActorRef<RenewerMsg>,
        msg: RenewerMsg,
        s: &mut Renewing,
    ) -> Result<(), ActorProcessingErr> {
        let event = match msg {
            RenewerMsg::Wake => s.pulse().map_or(Event::Wake, Event::Pulse),
            RenewerMsg::Answered { sent, answer } => {
                let answer = match answer {
                    Renew::Renewed { remaining } => Answer::Renewed { remaining },
                    Renew::NotHolder(answer) => Answer::NotHolder(answer),
                    // Refused and unknown alike renew nothing (I7).
                    Renew::Refused(error) | Renew::Unknown(error) => Answer::Failed(error),
                };
                Event::Answered { sent, answer }
            }
            RenewerMsg::Outranked(stale) => Event::Outranked(stale),
            RenewerMsg::Doubt => Event::Doubted,
        };
        s.step(&me, event)
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<RenewerMsg>,
        event: SupervisionEvent,
        s: &mut Renewing,
    ) -> Result<(), ActorProcessingErr> {
        let outcome = match event {
            SupervisionEvent::ActorTerminated(_, state, reason) => {
                // The state may own running things; it must not live on in here.
                drop(state);
                match reason.as_deref() {
                    Some("killed" | "actor_task_cancelled") => WorkerOutcome::Killed,
                    _ => WorkerOutcome::Finished,
                }
            }
            SupervisionEvent::ActorFailed(_, error) => WorkerOutcome::Failed(error.to_string().into()),
            _ => return Ok(()),
        };
        s.args.holder.cast(HolderMsg::WorkerEnded(outcome))?;
        Ok(())
    }
}

impl Renewing {
    fn muster(&mut self, me: &ActorRef<RenewerMsg>, leash: &Leash) {
        let RenewerArgs { ctx, scope, crew, holder, .. } = &self.args;
        let holder = holder.clone();
        match crew.muster(Term::new(scope.clone()), me.get_cell(), &ctx.app) {
            Ok(Mustered { cell, join, tell }) => {
                leash.put_on(cell);
                if let Some(note) = &scope.inherited {
                    tell(Notice::Inherited { note: note.clone() });
                }
                self.tell = Some(tell.clone());
                let scope = scope.clone();
                // Outside the tree that may be killed: somebody must stay who can say that the worker has ended.
                ctx.own.spawn(async move {
                    let not_started = match join.await {
                        Ok(Ok(worker)) => {
                            let _ = worker.await;
                            None
                        }
                        Ok(Err(error)) => Some(error.to_string().into()),
                        Err(error) => Some(error.to_string().into()),
                    };
                    scope.join_tasks().await;
                    let _ = holder.cast(HolderMsg::WorkerJoined { not_started });
                });
                let _ = self.args.holder.cast(HolderMsg::Mustered { tell: Tell(tell) });
            }
            Err(error) => {
                leash.put_on_nobody();
                let _ = holder.cast(HolderMsg::WorkerJoined { not_started: Some(error.to_string().into()) });
            }
        }
    }

    /// The worker's last pulse, if this tenure depends on it; and asks for the next.
    fn pulse(&self) -> Option<Moment> {
        let max = self.args.max_silence?;
        let pulse = self.args.scope.last_pulse();
        if let Some(tell) = &self.tell
            && self.args.ctx.now().since(pulse) > max / 4
        {
            tell(Notice::Pulse(Pulse::new(self.args.scope.clone())));
        }
        Some(pulse)
    }

    fn step(&mut self, me: &ActorRef<RenewerMsg>, event: Event) -> Result<(), ActorProcessingErr> {
        let todo = self.tenure.step(self.args.ctx.now(), event);
        self.perform(me, todo)
    }

    fn perform(&mut self, me: &ActorRef<RenewerMsg>, todo: Vec<Action>) -> Result<(), ActorProcessingErr> {
        let RenewerArgs { ctx, scope, holder, timing, .. } = &self.args;
        for action in todo {
            match action {
                Action::Renew { sent, .. } => {
                    // The tenure gives an attempt up in time for the next; the call itself may go on to the end of
                    // trust, for a late success still counts from its sending.
                    let within = ctx.until(scope.grant.trusted_until());
                    let renewal = Renewal { claim: scope.grant.claim().clone(), ttl: timing.ttl() };
                    let me = me.clone();
                    let done = Reply::new(move |answer| drop(me.cast(RenewerMsg::Answered { sent, answer })));
                    ctx.clerk.cast(crate::clerk::ClerkMsg::Renew { renewal, within, done })?;
                }
                Action::Extend(until) => scope.grant.extend(until),
                Action::Announce(standing) => {
                    if let (Standing::Jeopardy { until, .. }, Some(tell)) = (&standing, &self.tell) {
                        tell(Notice::Jeopardy { remaining: ctx.until(*until) });
                    }
                    holder.cast(HolderMsg::Stood(standing))?;
                }
                Action::LastCall { within } => holder.cast(HolderMsg::LastCall { within })?,
                Action::Anomaly(anomaly) => {
                    let claim = scope.grant.claim();
                    let (asked, remaining) = (anomaly.asked, anomaly.remaining);
                    ctx.events.tell(
                        &claim.name,
                        Some(claim.fence),
                        Happening::ClockAnomaly { asked, remaining },
                    );
                }
                Action::WakeAt(at) => {
                    let sleep = ctx.until(at).min(LONGEST_SLEEP);
                    let timer = me.send_after(sleep, || RenewerMsg::Wake).abort_handle();
                    if let Some(old) = self.timer.replace(timer) {
                        old.abort();
                    }
                }
                Action::End(cause) => {
                    // First the checks, then the tasks, then the worker, by this actor's end.
                    scope.grant.end(cause.clone());
                    scope.abort_tasks();
                    let claim = scope.grant.claim();
                    return Err(Box::new(leasehold_core::Lost {
                        name: claim.name.clone(),
                        fence: claim.fence,
                        cause,
                    }));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Renewing {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }
}
