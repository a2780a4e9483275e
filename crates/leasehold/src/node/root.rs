//! The root supervisor of a node.

use crate::{
    clerk::{Clerk, ClerkArgs, ClerkMsg},
    ended::ended,
    event::Events,
    mailroom::{Mailroom, MailroomArgs, MailroomMsg},
    telemetry::Traces,
    watcher::{Watcher, WatcherMsg},
};
use leasehold_core::{Clock, ReplicaId, SharedStore};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use std::sync::Arc;

/// The three actors that talk to the store.
#[derive(Debug, Clone)]
pub(crate) struct Staff {
    pub(crate) clerk: ActorRef<ClerkMsg>,
    pub(crate) watcher: ActorRef<WatcherMsg>,
    pub(crate) mailroom: ActorRef<MailroomMsg>,
}

pub(crate) enum RootMsg {
    /// Who they are; asked once, from outside.
    Staff(RpcReplyPort<Staff>),
}

#[cfg(feature = "cluster")]
impl ractor::Message for RootMsg {}

pub(crate) struct RootArgs {
    pub(crate) store: SharedStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: Events,
    pub(crate) traces: Traces,
    pub(crate) replica: ReplicaId,
}

pub(crate) struct Root;

pub(crate) struct Tree {
    args: RootArgs,
    staff: Option<Staff>,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Root {
    type Msg = RootMsg;
    type State = Tree;
    type Arguments = RootArgs;

    async fn pre_start(&self, _: ActorRef<RootMsg>, args: RootArgs) -> Result<Tree, ActorProcessingErr> {
        Ok(Tree { args, staff: None })
    }

    async fn post_start(&self, me: ActorRef<RootMsg>, tree: &mut Tree) -> Result<(), ActorProcessingErr> {
        let RootArgs { store, clock, events, traces, replica } = &tree.args;
        let clerk = ClerkArgs {
            store: store.clone(),
            clock: clock.clone(),
            events: events.clone(),
            traces: traces.clone(),
        };
        let (clerk, _) = Actor::spawn_linked(None, Clerk, clerk, me.get_cell()).await?;
        let (watcher, _) = Actor::spawn_linked(None, Watcher, store.clone(), me.get_cell()).await?;
        let room = MailroomArgs { store: store.clone(), replica: replica.clone() };
        let (mailroom, _) = Actor::spawn_linked(None, Mailroom, room, me.get_cell()).await?;
        tree.staff = Some(Staff { clerk, watcher, mailroom });
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<RootMsg>,
        RootMsg::Staff(port): RootMsg,
        tree: &mut Tree,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(staff) = tree.staff.clone() {
            let _ = port.send(staff);
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<RootMsg>,
        event: SupervisionEvent,
        tree: &mut Tree,
    ) -> Result<(), ActorProcessingErr> {
        let Some(ended) = ended(event) else { return Ok(()) };
        // Elections and holders come and go. Without one of the staff nothing below us can be renewed or released any
        // more: better an end now, which kills every worker, than terms that nobody serves.
        let staff = tree.staff.as_ref();
        if staff.is_some_and(|s| [s.clerk.get_id(), s.watcher.get_id(), s.mailroom.get_id()].contains(&ended))
        {
            me.stop(Some("one of its staff ended".into()));
        }
        Ok(())
    }
}
