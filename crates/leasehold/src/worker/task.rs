//! A future as a worker.

use super::{Crew, Mustered, Notice, crew::start};
use crate::term::Term;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};
use tokio::{runtime::Handle, time::MissedTickBehavior};

/// What the future of a worker may fail with: any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Work = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// Wraps a future into a worker for each term.
pub(crate) struct TaskCrew<F> {
    // Shared, so that it is called where the work runs: not on the renewer, which it could panic or block.
    work: Arc<F>,
    /// Beats this often on behalf of the future, as long as it gives way.
    pulse_every: Option<Duration>,
}

impl<F> TaskCrew<F> {
    pub(crate) fn new(work: F, pulse_every: Option<Duration>) -> Self {
        Self { work: Arc::new(work), pulse_every }
    }
}

impl<F> Crew for TaskCrew<F>
where
    F: Fn(Term) -> Work + Send + Sync + 'static,
{
    fn muster(&self, term: Term, renewer: ActorCell, app: &Handle) -> Result<Mustered, SpawnErr> {
        let (scope, pulsing) = (term.scope.clone(), term.clone());
        let make = self.work.clone();
        let work: Work = Box::pin(async move { make(term).await });
        let args = TaskArgs { work, pulsing: self.pulse_every.map(|every| (pulsing, every)) };
        let (actor, join) = start(TaskWorker, args, renewer, app)?;
        let tell = Arc::new(move |notice| {
            // A future has no mailbox; what it needs to hear it asks its term for.
            match notice {
                Notice::Quiesce { within, .. } => scope.ask_to_quiesce(within),
                Notice::Resume { done } => scope.ask_to_resume(done),
                _ => {}
            }
        });
        Ok(Mustered { cell: actor.get_cell(), join, tell })
    }
}

/// The actor around a future: it lives as long as the future, and a kill drops the future at its await.
struct TaskWorker;

struct TaskArgs {
    work: Work,
    pulsing: Option<(Term, Duration)>,
}

enum TaskMsg {
    Run,
}

#[cfg(feature = "cluster")]
impl ractor::Message for TaskMsg {}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for TaskWorker {
    type Msg = TaskMsg;
    type State = Option<TaskArgs>;
    type Arguments = TaskArgs;

    async fn pre_start(
        &self,
        me: ActorRef<TaskMsg>,
        args: TaskArgs,
    ) -> Result<Option<TaskArgs>, ActorProcessingErr> {
        me.cast(TaskMsg::Run)?;
        Ok(Some(args))
    }

    async fn handle(
        &self,
        me: ActorRef<TaskMsg>,
        TaskMsg::Run: TaskMsg,
        state: &mut Option<TaskArgs>,
    ) -> Result<(), ActorProcessingErr> {
        // Taken out of the state: a state may live on in a supervision event, the work must not.
        if let Some(TaskArgs { work, pulsing }) = state.take() {
            // This task has just woken the renewer, and tokio keeps what a task wakes for the same thread: work that
            // blocks from its first line on would take its own renewer hostage, with other threads idle.
            tokio::task::yield_now().await;
            match pulsing {
                None => work.await?,
                Some((term, every)) => with_pulse(work, term, every).await?,
            }
        }
        me.stop(None);
        Ok(())
    }
}

/// Runs the work and beats beside it, in one task: a future that blocks its thread stops the pulse with it.
async fn with_pulse(work: Work, term: Term, every: Duration) -> Result<(), BoxError> {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => term.pulse(),
        }
    }
}
