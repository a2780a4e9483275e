//! A lease, held once, while one future runs.

mod seeker;

use crate::{
    error::{ConfigError, HoldError},
    event::WorkerOutcome,
    holder::{HolderMsg, TermReport},
    node::Node,
    standing::{Standings, Stood},
    term::Term,
    terms::{Terms, terms_setters},
    worker::TaskCrew,
};
use leasehold_core::{
    Fence, LeaseName, Lost, LostCause, NameError, Release, TraceContext, campaign::Patience,
};
use ractor::ActorRef;
use seeker::{Found, Seeker, SeekerArgs, SeekerMsg};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::oneshot;

/// A lease that is to be held; made by [`Node::lease`].
#[derive(Debug)]
#[must_use = "a lease is acquired only once `hold` is called"]
pub struct Lease {
    node: Node,
    name: Result<LeaseName, NameError>,
    terms: Terms,
    wait: Wait,
}

#[derive(Debug, Clone, Copy)]
enum Wait {
    Forever,
    For(Duration),
    Not,
}

/// Work that ran to its end under a lease.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use = "it says whether the lease was held to the end of the work"]
pub struct Finished<T> {
    /// What the work returned.
    pub output: T,
    /// The fence under which it ran.
    pub fence: Fence,
    /// Set if the lease was lost before the work returned: its last steps were not covered, and if they wrote to a
    /// resource that checks no fences, somebody else may have written between them.
    pub lost: Option<LostCause>,
    /// What the store answered to the release, if it was asked. Anything but `Released` means that the next holder may
    /// have to wait for the expiry.
    pub release: Option<Release>,
    /// The standings of the term, in order, those of equal kind coalesced; the last is its end.
    pub standings: Vec<Stood>,
}

/// How long a holder whose caller has gone may take to quiesce its work: not at all, for nobody wants the result.
const ABANDONED_WITHIN: Duration = Duration::ZERO;

impl Lease {
    terms_setters!();

    pub(crate) fn new(node: Node, name: Result<LeaseName, NameError>) -> Self {
        Self { node, name, terms: Terms::default(), wait: Wait::Forever }
    }

    /// Waits at most this long for the lease. Default: for ever.
    pub const fn wait(mut self, at_most: Duration) -> Self {
        self.wait = Wait::For(at_most);
        self
    }

    /// Asks once, and does not wait: somebody else's holding is an answer.
    pub const fn try_once(mut self) -> Self {
        self.wait = Wait::Not;
        self
    }

    /// Acquires the lease, runs `work` under it, and releases it after the work has ended. What it gave to
    /// [`Term::spawn`] and did not wait for is aborted then, and joined before the release.
    ///
    /// The work runs as a task of its own. It is dropped at its next `.await` when the lease is lost. Dropping the
    /// returned future drops the work too, and releases the lease after that, in the background; in the middle of
    /// an acquire it undoes what may have been acquired.
    ///
    /// # Errors
    /// [`HoldError`]: not acquired (by whom it is held, out of time, or what failed), lost, panicked, or stopped. The
    /// work's own result, an error too, is [`Finished::output`], whatever became of the release.
    pub async fn hold<T, F, Fut>(self, work: F) -> Result<Finished<T>, HoldError>
    where
        T: Send + 'static,
        F: FnOnce(Term) -> Fut + Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        let name = self.name.map_err(ConfigError::from)?;
        let ctx = self.node.context();
        let settings = self.terms.settings(ctx)?;
        let patience = match self.wait {
            Wait::Forever => Patience::Forever,
            Wait::For(at_most) => Patience::Until(ctx.now().after(at_most)),
            Wait::Not => Patience::Try,
        };
        let output = Arc::new(Mutex::new(None));
        let pulse = settings.max_silence.map(|max| max / 4);
        let crew = TaskCrew::new(once(work, output.clone()), pulse);
        let (standings, mut stream) = Standings::open();
        let (found, finding) = oneshot::channel();
        let stopped = || HoldError::Stopped { name: name.clone() };

        let manner = crate::candidate::Manner {
            name: name.clone(),
            timing: settings.timing,
            patience,
            priority: self.terms.priority,
            crash_witness: self.terms.crash_witness,
            trace: ctx.traces.here(),
        };
        let args =
            SeekerArgs { node: self.node.clone(), manner, settings, crew: Arc::new(crew), standings, found };
        let stop = |seeker: &ActorRef<SeekerMsg>, _| seeker.stop(None);
        let seeker = self.node.enrol(Seeker, args, stop).await.map_err(|_| stopped())?;
        // Until the holder is ours, dropping this future ends the seeker; from then on, the holder.
        let seeking = Leaving::seeker(seeker);
        let Found { holding, report } = finding
            .await
            .map_err(|_| stopped())?
            .map_err(|defeat| HoldError::not_acquired(name.clone(), defeat))?;
        seeking.done();
        let report = report.await.map_err(|_| stopped())?;
        holding.done();

        let mut standings = Vec::new();
        while let Some(stood) = stream.next().await {
            standings.push(stood);
        }
        let output = output.lock().unwrap_or_else(PoisonError::into_inner).take();
        conclude(name, report, output, standings)
    }
}

fn conclude<T>(
    name: LeaseName,
    report: TermReport,
    output: Option<T>,
    standings: Vec<Stood>,
) -> Result<Finished<T>, HoldError> {
    let TermReport { fence, worker, cause, release, .. } = report;
    let lost = (!cause.is_voluntary()).then_some(cause);
    match (output, lost, worker) {
        (Some(output), lost, _) => Ok(Finished { output, fence, lost, release, standings }),
        (None, _, WorkerOutcome::Failed(message)) => Err(HoldError::Panicked { name, message }),
        (None, Some(cause), _) => Err(HoldError::Lost(Lost { name, fence, cause })),
        (None, None, _) => Err(HoldError::Stopped { name }),
    }
}

/// Runs a one-off closure as the work of a crew, and keeps its output.
fn once<T, F, Fut>(
    work: F,
    output: Arc<Mutex<Option<T>>>,
) -> impl Fn(Term) -> crate::worker::Work + Send + Sync + 'static
where
    T: Send + 'static,
    F: FnOnce(Term) -> Fut + Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let work = Mutex::new(Some(work));
    move |term| {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let output = output.clone();
        Box::pin(async move {
            // A one-off lease has one term, so the work is there.
            if let Some(work) = work {
                let value = work(term).await;
                *output.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            }
            Ok(())
        })
    }
}

/// Tells an actor to end when it is dropped, unless all is done.
struct Leaving(Option<Box<dyn FnOnce() + Send>>);

impl Leaving {
    fn seeker(actor: ActorRef<SeekerMsg>) -> Self {
        Self(Some(Box::new(move || actor.stop(None))))
    }

    fn holder(actor: ActorRef<HolderMsg>) -> Self {
        Self(Some(Box::new(move || leave(&actor))))
    }

    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(leave) = self.0.take() {
            leave();
        }
    }
}

fn leave(holder: &ActorRef<HolderMsg>) {
    let by = "its caller".into();
    let reason = "the future that waited for the work was dropped".into();
    let _ = holder.cast(HolderMsg::Leave { within: ABANDONED_WITHIN, by, reason, trace: TraceContext::NONE });
}
