//! The mailroom keeps this replica's candidacies in the rosters, and reads its letters.

mod inbox;
mod presence;
mod readers;

use crate::{
    calls::{Calls, bounded},
    reply::Reply,
    telemetry,
};
use leasehold_core::{
    AttemptId, Candidacy, Envelope, LeaseName, ReplicaId, SharedStore, Store, StoreError, Verb,
    handoff::request,
};
use presence::{Presence, Ranked};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{collections::HashMap, time::Duration};
use tokio::task::AbortHandle;

pub(crate) use presence::Ranked as RankedEar;
use readers::Readers;
pub(crate) use readers::Slot;

#[derive(Debug)]
pub(crate) enum MailroomMsg {
    /// Enter a candidacy into its roster and keep it there. `ttl` is the lease's; `ranked` is told our place.
    Enlist {
        candidacy: Candidacy,
        ttl: Duration,
        ranked: Ranked,
    },
    /// Take it out again.
    Withdraw {
        id: AttemptId,
    },
    /// Refresh it: the time for it has come.
    Refresh {
        id: AttemptId,
    },
    /// A roster was read.
    Seen {
        id: AttemptId,
        before: usize,
    },
    /// Give this reader the letters about a lease.
    Subscribe {
        name: LeaseName,
        id: u64,
        slot: Slot,
    },
    Unsubscribe {
        name: LeaseName,
        id: u64,
    },
    /// A letter came.
    Letter(Envelope),
    /// Send a letter, as well as that can be done.
    Post {
        to: ReplicaId,
        envelope: Envelope,
    },
    /// Read a roster: who wants the lease, the first in rank first. `None` if it could not be read.
    Candidates {
        name: LeaseName,
        done: Reply<Option<Vec<Candidacy>>>,
    },
    /// A task ended.
    TaskEnded,
    /// Withdraw everything, and say when it is done.
    Close {
        done: Reply<()>,
    },
}

#[cfg(feature = "cluster")]
impl ractor::Message for MailroomMsg {}

pub(crate) struct MailroomArgs {
    pub(crate) store: SharedStore,
    pub(crate) replica: ReplicaId,
}

pub(crate) struct Mailroom;

pub(crate) struct Room {
    me: ActorRef<MailroomMsg>,
    store: SharedStore,
    replica: ReplicaId,
    present: HashMap<AttemptId, Presence>,
    readers: Readers,
    calls: Calls,
    reader: AbortHandle,
    closing: Vec<Reply<()>>,
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
        let reader = inbox::read(args.store.clone(), args.replica.clone(), me.clone());
        Ok(Room {
            me,
            store: args.store,
            replica: args.replica,
            present: HashMap::new(),
            readers: Readers::default(),
            calls: Calls::default(),
            reader,
            closing: Vec::new(),
        })
    }

    async fn handle(
        &self,
        me: ActorRef<MailroomMsg>,
        msg: MailroomMsg,
        room: &mut Room,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            MailroomMsg::Enlist { candidacy, ttl, ranked } => {
                let id = candidacy.id;
                room.present.insert(id, Presence::new(candidacy, ttl, ranked));
                room.announce(id);
            }
            MailroomMsg::Refresh { id } => room.announce(id),
            MailroomMsg::Seen { id, before } => {
                if let Some(presence) = room.present.get_mut(&id) {
                    presence.seen(before, &me);
                }
            }
            MailroomMsg::Withdraw { id } => room.withdraw(id),
            MailroomMsg::Subscribe { name, id, slot } => room.readers.add(name, id, slot),
            MailroomMsg::Unsubscribe { name, id } => room.readers.remove(&name, id),
            MailroomMsg::Letter(letter) => room.letter(&letter),
            MailroomMsg::Post { to, envelope } => room.post(to, envelope),
            MailroomMsg::Candidates { name, done } => room.candidates(name, done),
            MailroomMsg::TaskEnded => room.task_ended(),
            MailroomMsg::Close { done } => room.close(done),
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<MailroomMsg>, room: &mut Room) -> Result<(), ActorProcessingErr> {
        room.end();
        Ok(())
    }
}

impl Room {
    fn announce(&mut self, id: AttemptId) {
        let Some(presence) = self.present.get(&id) else { return };
        let (me, store, candidacy, ttl) =
            (self.me.clone(), self.store.clone(), presence.candidacy().clone(), presence.announced_for());
        let announcing = self.task(async move {
            let announced = asked(&*store, Verb::Announce, || store.announce(&candidacy, ttl)).await;
            if let Err(error) = announced {
                telemetry::roster_troubled(&candidacy.name, &error);
            }
            let before = place(&*store, &candidacy.name, id).await;
            let _ = me.cast(MailroomMsg::Seen { id, before });
        });
        if let Some(presence) = self.present.get_mut(&id) {
            presence.announcing(announcing);
        }
    }

    fn withdraw(&mut self, id: AttemptId) {
        // With the presence goes its announcement, if one is under way: it must not come after the withdrawal.
        let Some(candidacy) = self.present.remove(&id).map(|presence| presence.candidacy().clone()) else {
            return;
        };
        let store = self.store.clone();
        self.task(async move {
            // An entry that could not be withdrawn expires by itself.
            if let Err(error) = asked(&*store, Verb::Withdraw, || store.withdraw(&candidacy)).await {
                telemetry::roster_troubled(&candidacy.name, &error);
            }
        });
    }

    fn letter(&mut self, letter: &Envelope) {
        if self.readers.deliver(letter) {
            return;
        }
        telemetry::letter_ignored(&letter.kind, &letter.from);
        // Whoever waits for an answer shall not wait in vain.
        if let Ok(request) = request::open(letter) {
            let news = request::refusal(
                request.id,
                "it is not held by an election of this replica: work that runs once is not handed over",
            );
            let envelope = request::seal_news(&news, &letter.lease, &self.replica, &letter.trace);
            self.post(letter.from.clone(), envelope);
        }
    }

    fn post(&mut self, to: ReplicaId, envelope: Envelope) {
        let store = self.store.clone();
        self.task(async move {
            if let Err(error) = asked(&*store, Verb::Post, || store.post(&to, &envelope)).await {
                telemetry::letter_lost(&envelope, &to, &error);
            }
        });
    }

    fn candidates(&mut self, name: LeaseName, done: Reply<Option<Vec<Candidacy>>>) {
        let store = self.store.clone();
        self.task(async move {
            let roster = asked(&*store, Verb::Candidates, || store.candidates(&name)).await;
            done.send(match roster {
                Ok(roster) => Some(roster),
                Err(error) => {
                    telemetry::roster_troubled(&name, &error);
                    None
                }
            });
        });
    }

    fn task(&mut self, call: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let me = self.me.clone();
        self.calls.start(call, move || drop(me.cast(MailroomMsg::TaskEnded)))
    }

    fn task_ended(&mut self) {
        self.calls.one_ended();
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.calls.are_over() {
            self.closing.drain(..).for_each(|done| done.send(()));
        }
    }

    fn close(&mut self, done: Reply<()>) {
        self.reader.abort();
        for id in self.present.keys().copied().collect::<Vec<_>>() {
            self.withdraw(id);
        }
        self.closing.push(done);
        self.tidy();
    }

    fn end(&mut self) {
        self.reader.abort();
        self.calls.abort();
    }
}

/// Also when the mailroom was killed: its tasks would read for ever (I11).
impl Drop for Room {
    fn drop(&mut self) {
        self.end();
    }
}

/// The longest that one question about a roster is waited for.
const QUESTION: Duration = Duration::from_secs(5);
async fn asked<T, F>(store: &dyn Store, verb: Verb, question: impl FnOnce() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    bounded(QUESTION, question).await.unwrap_or_else(|fault| Err(fault.error(verb, store)))
}

/// How many candidates are before us; drawn by lot if the roster cannot be read, for then nobody knows the order, and
/// all at once they would be a herd.
async fn place(store: &dyn Store, name: &LeaseName, id: AttemptId) -> usize {
    match asked(store, Verb::Candidates, || store.candidates(name)).await {
        Ok(roster) => roster.iter().position(|c| c.id == id).unwrap_or(roster.len()),
        Err(error) => {
            telemetry::roster_troubled(name, &error);
            usize::from(id.as_bytes()[0]) % LOTS
        }
    }
}

/// How many places there are to draw.
const LOTS: usize = 16;
