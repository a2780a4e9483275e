//! Setting an election up.

use super::{Election, ElectionActor, ElectionArgs, Position, WarmUp, handle::shut};
use crate::{
    candidate::Manner,
    error::{ConfigError, StartError},
    node::Node,
    standing::Standings,
    term::Term,
    terms::{Terms, terms_setters},
    worker::{ActorCrew, BoxError, Crew, TaskCrew, Worker},
};
use leasehold_core::{LeaseName, NameError, campaign::Patience, handoff::Preference};
use std::sync::{Arc, atomic::AtomicBool};
use tokio::sync::watch;

/// An election that is being set up; made by [`Node::election`].
#[derive(Debug)]
#[must_use = "an election campaigns only once `lead` or `run` is called"]
pub struct ElectionBuilder {
    node: Node,
    name: Result<LeaseName, NameError>,
    terms: Terms,
    warm_up: Option<WarmUp>,
    preference: Option<Preference>,
}

/// An election was not started. Nothing was sent to the store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ElectError {
    /// A setting was refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The node cannot start anything any more.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl ElectionBuilder {
    terms_setters!();

    /// Hands leadership over, while this replica leads, to a candidate of higher [`priority`](Self::priority), by the rules of
    /// the [`Preference`], which keep it from flapping. Costs a read of the roster every second to every minute, while
    /// leading. Default: off, a priority only decides who leads next.
    pub fn prefer(mut self, preference: Preference) -> Self {
        self.preference = Some(preference);
        self
    }

    pub(crate) fn new(node: Node, name: Result<LeaseName, NameError>) -> Self {
        Self { node, name, terms: Terms::default(), warm_up: None, preference: None }
    }

    /// What this replica does when it is asked to take over, before it says that it is ready: filling caches, opening
    /// connections. The incumbent leads meanwhile, and asks the next candidate if it takes long (2 s), unless this is the
    /// only one. An error or a panic declines. The future is dropped when nothing comes of the handoff.
    ///
    /// It runs on the runtime of the workers, for each handoff anew, also when the last one was not used. It does not run
    /// before a term that nobody handed over.
    pub fn warm_up<F, Fut>(mut self, warm_up: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.warm_up = Some(WarmUp::new(warm_up));
        self
    }

    /// Campaigns from now on, and runs `work` whenever this replica leads.
    ///
    /// The future is dropped at its next `.await` when the term ends, whatever ended it. If it returns, the lease is
    /// released and, after a pause that grows while terms end quickly, this replica campaigns again; an error is
    /// logged and reported as the worker's outcome, and treated alike.
    ///
    /// # Errors
    /// [`ElectError`] for a setting that cannot work. A store that cannot be reached is no error here: the election
    /// goes on trying, and [`Election::position`] tells.
    pub async fn lead<F, Fut>(self, work: F) -> Result<Election, ElectError>
    where
        F: Fn(Term) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let settings = self.terms.settings(self.node.context())?;
        let pulse = settings.max_silence.map(|max| max / 4);
        self.start(Arc::new(TaskCrew::new(move |term| Box::pin(work(term)) as _, pulse))).await
    }

    /// Campaigns from now on, and runs a worker actor whenever this replica leads: `make` builds it and its arguments
    /// for each term.
    ///
    /// # Errors
    /// As [`ElectionBuilder::lead`].
    pub async fn run<W, F>(self, make: F) -> Result<Election, ElectError>
    where
        W: Worker,
        F: Fn(Term) -> (W, W::Arguments) + Send + Sync + 'static,
    {
        self.start(Arc::new(ActorCrew::new(make))).await
    }

    async fn start(self, crew: Arc<dyn Crew>) -> Result<Election, ElectError> {
        let name = self.name.map_err(ConfigError::from)?;
        let ctx = self.node.context();
        let settings = self.terms.settings(ctx)?;
        let manner = Manner {
            name: name.clone(),
            timing: settings.timing,
            patience: Patience::Forever,
            priority: self.terms.priority,
            crash_witness: self.terms.crash_witness,
            trace: ctx.traces.here(),
        };
        let (standings, stream) = Standings::open();
        let (position, watched) = watch::channel(Position::Campaigning);
        let longest_end = settings.join_within + settings.release_within + settings.taking_over();
        let unconfirmed = Arc::<AtomicBool>::default();
        let ctx = ctx.clone();
        let args = ElectionArgs {
            ctx,
            manner,
            settings,
            crew,
            standings,
            position,
            warm_up: self.warm_up,
            preference: self.preference,
            unconfirmed: unconfirmed.clone(),
        };
        let actor = self.node.enrol(ElectionActor, args, shut).await?;
        Ok(Election::new(&self.node, name, actor, stream, watched, longest_end, unconfirmed))
    }
}
