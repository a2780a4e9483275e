//! An actor that does in each hook what the test tells it, and writes everything down.

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, ActorRuntime, SpawnErr, SupervisionEvent};

use super::act::{Act, nothing};
use super::journal::{Hook, Journal, Step, Told};
use super::player::{Cue, Player, Starting};

/// What an actor is to do in the hooks it gets no message for. Nothing, unless told otherwise.
pub(super) struct Script {
    witness: Witness,
    pre_start: Option<Act>,
    post_start: Option<Act>,
    post_stop: Option<Act>,
    on_state_drop: Option<Box<dyn FnOnce() + Send>>,
}

impl Script {
    pub(super) fn new(who: &'static str, journal: &Journal) -> Self {
        let witness = Witness { who, journal: journal.clone() };
        Self { witness, pre_start: None, post_start: None, post_stop: None, on_state_drop: None }
    }

    pub(super) fn pre_start(self, act: Act) -> Self {
        Self { pre_start: Some(act), ..self }
    }

    pub(super) fn post_start(self, act: Act) -> Self {
        Self { post_start: Some(act), ..self }
    }

    pub(super) fn post_stop(self, act: Act) -> Self {
        Self { post_stop: Some(act), ..self }
    }

    /// Runs in the drop of the state, before the journal is told of it.
    pub(super) fn on_state_drop(self, act: impl FnOnce() + Send + 'static) -> Self {
        Self { on_state_drop: Some(Box::new(act)), ..self }
    }

    pub(super) async fn spawn(self) -> Player {
        self.spawn_as(None).await.expect("nothing keeps it from starting")
    }

    /// For those who want to see what becomes of a name.
    pub(super) async fn spawn_as(self, name: Option<String>) -> Result<Player, SpawnErr> {
        let (actor, join) = Actor::spawn(name, Scripted, self).await?;
        Ok(Player { actor, join })
    }

    pub(super) async fn spawn_under(self, parent: &Player) -> Player {
        self.try_spawn_under(parent.actor.get_cell()).await.expect("the parent is alive")
    }

    pub(super) async fn try_spawn_under(self, parent: ActorCell) -> Result<Player, SpawnErr> {
        let (actor, join) = Actor::spawn_linked(None, Scripted, self, parent).await?;
        Ok(Player { actor, join })
    }

    pub(super) fn spawn_instantly_under(self, parent: &Player) -> Starting {
        let (actor, start) =
            ActorRuntime::spawn_linked_instant(None, Scripted, self, parent.actor.get_cell())
                .expect("only a name could be refused");
        Starting { actor, start }
    }
}

struct Scripted;

/// Watches one actor perform.
struct Witness {
    who: &'static str,
    journal: Journal,
}

impl Witness {
    async fn perform(
        &self,
        hook: Hook,
        act: Option<Act>,
        me: ActorRef<Cue>,
    ) -> Result<(), ActorProcessingErr> {
        self.journal.write(self.who, Step::Began(hook));
        let mut running = Running { witness: self, hook, ended: false };
        let result = act.unwrap_or_else(nothing).begin(me).await;
        running.ended = true;
        result
    }
}

/// Writes down how a hook ended, by being dropped with its future.
struct Running<'a> {
    witness: &'a Witness,
    hook: Hook,
    ended: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let step = if self.ended { Step::Ended(self.hook) } else { Step::Cut(self.hook) };
        self.witness.journal.write(self.witness.who, step);
    }
}

/// The state: what is left of the script once the actor has started.
struct Rest(Script);

impl Drop for Rest {
    fn drop(&mut self) {
        if let Some(act) = self.0.on_state_drop.take() {
            act();
        }
        self.0.witness.journal.write(self.0.witness.who, Step::StateDropped);
    }
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Scripted {
    type Msg = Cue;
    type State = Rest;
    type Arguments = Script;

    async fn pre_start(&self, me: ActorRef<Cue>, mut script: Script) -> Result<Rest, ActorProcessingErr> {
        let act = script.pre_start.take();
        script.witness.perform(Hook::PreStart, act, me).await?;
        Ok(Rest(script))
    }

    async fn post_start(&self, me: ActorRef<Cue>, rest: &mut Rest) -> Result<(), ActorProcessingErr> {
        let act = rest.0.post_start.take();
        rest.0.witness.perform(Hook::PostStart, act, me).await
    }

    async fn post_stop(&self, me: ActorRef<Cue>, rest: &mut Rest) -> Result<(), ActorProcessingErr> {
        let act = rest.0.post_stop.take();
        rest.0.witness.perform(Hook::PostStop, act, me).await
    }

    async fn handle(
        &self,
        me: ActorRef<Cue>,
        Cue(tag, act): Cue,
        rest: &mut Rest,
    ) -> Result<(), ActorProcessingErr> {
        rest.0.witness.perform(Hook::Handle(tag), Some(act), me).await
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Cue>,
        event: SupervisionEvent,
        rest: &mut Rest,
    ) -> Result<(), ActorProcessingErr> {
        let told = match event {
            SupervisionEvent::ActorStarted(_) => Told::Started,
            SupervisionEvent::ActorTerminated(_, state, reason) => {
                Told::Terminated { state: state.is_some(), reason }
            }
            SupervisionEvent::ActorFailed(_, error) => Told::failed(&error.to_string()),
            _ => return Ok(()),
        };
        rest.0.witness.journal.write(rest.0.witness.who, Step::Told(told));
        Ok(())
    }
}
