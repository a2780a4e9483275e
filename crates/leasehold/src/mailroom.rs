//! The mailroom keeps this replica's candidacies in the rosters, and reads its letters.

mod presence;

use crate::{clerk::bounded, reply::Reply, telemetry};
use leasehold_core::{
    AttemptId, Candidacy, Envelope, LeaseName, ReplicaId, SharedStore, Store, StoreError, Verb,
};
use presence::{Presence, Ranked};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{collections::HashMap, time::Duration};
use tokio::task::{AbortHandle, JoinSet};

pub(crate) use presence::Ranked as RankedEar;

#[derive(Debug)]
pub(crate) enum MailroomMsg {
    /// Enter a candidacy into its roster and keep it there. `ttl` is the lease's; `ranked` is told our place.
    Enlist { candidacy: Candidacy, ttl: Duration, ranked: Ranked },
    /// Take it out again.
    Withdraw { id: AttemptId },
    /// Refresh it: the time for it has come.
    Refresh { id: AttemptId },
    /// A roster was read.
    Seen { id: AttemptId, before: usize },
    /// A letter came.
    Letter(Envelope),
    /// Withdraw everything, and say when it is done.
    Close { done: Reply<()> },
}

#[cfg(feature = "cluster")]
impl ractor::Message for MailroomMsg {}

pub(crate) struct MailroomArgs {
    pub(crate) store: SharedStore,
    pub(crate) replica: ReplicaId,
}

pub(crate) struct Mailroom;

pub(crate) struct Room {
    store: SharedStore,
    present: HashMap<AttemptId, Presence>,
    tasks: JoinSet<()>,
    reader: AbortHandle,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Mailroom {
    type Msg = MailroomMsg;
    type State = Room;
    type Arguments = MailroomArgs;

    async fn pre_start(
        &self,
        me: ActorRef<MailroomMsg>,
        args: MailroomArgs,
    ) -> Result<Room, ActorProcessingErr> {
        let reader = read(args.store.clone(), args.replica, me);
        Ok(Room { store: args.store, present: HashMap::new(), tasks: JoinSet::new(), reader })
    }

    async fn handle(
        &self,
        me: ActorRef<MailroomMsg>,
        msg: MailroomMsg,
        room: &mut Room,
    ) -> Result<(), ActorProcessingErr> {
        while room.tasks.try_join_next().is_some() {}
        match msg {
            MailroomMsg::Enlist { candidacy, ttl, ranked } => {
                let id = candidacy.id;
                room.present.insert(id, Presence::new(candidacy, ttl, ranked));
                room.announce(id, me);
            }
            MailroomMsg::Refresh { id } => room.announce(id, me),
            MailroomMsg::Seen { id, before } => {
                if let Some(presence) = room.present.get_mut(&id) {
                    presence.seen(before, &me);
                }
            }
            MailroomMsg::Withdraw { id } => room.withdraw(id),
            MailroomMsg::Letter(letter) => telemetry::letter_ignored(&letter.kind, &letter.from),
            MailroomMsg::Close { done } => {
                room.reader.abort();
                for id in room.present.keys().copied().collect::<Vec<_>>() {
                    room.withdraw(id);
                }
                let mut tasks = std::mem::take(&mut room.tasks);
                tokio::spawn(async move {
                    while tasks.join_next().await.is_some() {}
                    done.send(());
                });
            }
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<MailroomMsg>, room: &mut Room) -> Result<(), ActorProcessingErr> {
        room.reader.abort();
        room.tasks.abort_all();
        Ok(())
    }
}

impl Room {
    fn announce(&mut self, id: AttemptId, me: ActorRef<MailroomMsg>) {
        let Some(presence) = self.present.get(&id) else { return };
        let (store, candidacy, ttl) =
            (self.store.clone(), presence.candidacy().clone(), presence.announced_for());
        self.tasks.spawn(async move {
            let announced = asked(&*store, Verb::Announce, store.announce(&candidacy, ttl)).await;
            if let Err(error) = announced {
                telemetry::roster_troubled(&candidacy.name, &error);
            }
            let before = place(&*store, &candidacy.name, id).await;
            let _ = me.cast(MailroomMsg::Seen { id, before });
        });
    }

    fn withdraw(&mut self, id: AttemptId) {
        let Some(presence) = self.present.remove(&id) else { return };
        let store = self.store.clone();
        self.tasks.spawn(async move {
            // An entry that could not be withdrawn expires by itself.
            if let Err(error) = asked(&*store, Verb::Withdraw, store.withdraw(presence.candidacy())).await {
                telemetry::roster_troubled(&presence.candidacy().name, &error);
            }
        });
    }
}

/// The longest that one question about a roster is waited for.
const QUESTION: Duration = Duration::from_secs(5);

async fn asked<T>(
    store: &dyn Store,
    verb: Verb,
    question: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    bounded(QUESTION, question).await.unwrap_or_else(|fault| Err(fault.error(verb, store)))
}

/// How many candidates are before us; none if the roster cannot be read.
async fn place(store: &dyn Store, name: &LeaseName, id: AttemptId) -> usize {
    match asked(store, Verb::Candidates, store.candidates(name)).await {
        Ok(roster) => roster.iter().position(|c| c.id == id).unwrap_or(roster.len()),
        Err(error) => {
            telemetry::roster_troubled(name, &error);
            0
        }
    }
}

/// Reads letters for as long as it runs.
fn read(store: SharedStore, replica: ReplicaId, me: ActorRef<MailroomMsg>) -> AbortHandle {
    let task = tokio::spawn(async move {
        let seed = AttemptId::random().as_bytes()[0];
        let mut backoff = leasehold_core::backoff::Backoff::new(
            Duration::from_millis(200),
            Duration::from_secs(10),
            seed.into(),
        );
        loop {
            match store.inbox(&replica).await {
                Ok(mut inbox) => {
                    backoff.reset();
                    while let Some(letter) = inbox.next().await {
                        if me.cast(MailroomMsg::Letter(letter)).is_err() {
                            return;
                        }
                    }
                }
                Err(error) => telemetry::inbox_troubled(&error),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    });
    task.abort_handle()
}
