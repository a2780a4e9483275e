//! A scripted actor from outside: what a test does with it once it is spawned.

use ractor::concurrency::JoinHandle;
use ractor::{ActorRef, SpawnErr};

use super::act::Act;
use super::journal::{Hook, Journal, Step, soon};

/// A message: what to do, and the tag under which the journal knows it.
pub(super) struct Cue(pub(super) u8, pub(super) Act);

#[cfg(feature = "cluster")]
impl ractor::Message for Cue {}

/// A scripted actor that runs, or has run.
pub(super) struct Player {
    pub(super) actor: ActorRef<Cue>,
    pub(super) join: JoinHandle<()>,
}

/// A scripted actor whose `pre_start` may not have ended; `start` says how it did.
pub(super) struct Starting {
    pub(super) actor: ActorRef<Cue>,
    pub(super) start: JoinHandle<Result<JoinHandle<()>, SpawnErr>>,
}

impl Player {
    /// Sends a message that is to do `act`.
    pub(super) fn cue(&self, tag: u8, act: Act) {
        self.actor.cast(Cue(tag, act)).expect("a living actor takes messages");
    }

    /// Sends a message that is to do `act`, and returns once it does.
    pub(super) async fn busy(&self, journal: &Journal, who: &str, tag: u8, act: Act) {
        self.cue(tag, act);
        journal.until(who, Step::Began(Hook::Handle(tag))).await;
    }

    /// Returns when every supervision event that was sent to this actor by now has been handled, for they all
    /// overtake the message this sends.
    pub(super) async fn settle(&self) {
        let (done, settled) = tokio::sync::oneshot::channel();
        let act = Act::new(|_| async {
            let _ = done.send(());
            Ok(())
        });
        self.cue(u8::MAX, act);
        soon(settled).await.expect("the actor lives to handle the message");
    }

    /// Waits for the end of the actor's task.
    pub(super) async fn joined(&mut self) {
        soon(&mut self.join).await.expect("an actor's task catches its panics");
    }
}
