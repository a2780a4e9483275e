//! The lease holder: one per term. It owns the grant, and decides when the lease may be released.
//!
//! ```text
//! Leading ── leave ──► Quiescing ── worker joined ──► Ending ── renewer ended ──► Releasing ──► over
//!    │                     │ time is up: kill              ▲
//!    │ worker ended        └────────────────► Joining ─────┤
//!    ├─────────────────────────────────────────────────────┘
//!    │ renewer ended (the loss)
//!    └──────────► Joining ── worker joined ──► Releasing ──► over
//! ```
//!
//! It awaits no I/O: it casts to the clerk and gets a fact back. The only gate to a release is that the worker, and
//! every task of its term, has been joined (I6).

mod book;
mod report;
mod settings;
mod stage;

pub(crate) use book::HandMsg;
pub(crate) use report::TermReport;
pub(crate) use settings::{HolderArgs, Settings};

use crate::{ended::ended, event::WorkerOutcome, renewer::Renewer, worker::Notice};
use book::Book;
use leasehold_core::{LeaseRecord, Release, Standing, TraceContext};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use stage::Stage;
use std::{fmt, sync::Arc, time::Duration};

/// Tells the worker something.
#[derive(Clone)]
pub(crate) struct Tell(pub(crate) Arc<dyn Fn(Notice) + Send + Sync>);

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

#[derive(Debug)]
pub(crate) enum HolderMsg {
    /// A worker was started.
    Mustered { tell: Tell },
    /// The renewer says how the term stands.
    Stood(Standing),
    /// Renewals fail, and this much trust is left: the worker should end now.
    LastCall { within: Duration },
    /// The lease was seen in a state that is not our claim.
    Doubted(Option<Box<LeaseRecord>>),
    /// What concerns a handoff.
    Hand(HandMsg),
    /// The worker's end, as its parent saw it.
    WorkerEnded(WorkerOutcome),
    /// The worker and all tasks of its term have been dropped.
    WorkerJoined { not_started: Option<Arc<str>> },
    /// A task of the term panicked.
    TaskPanicked { message: Arc<str> },
    /// Give the lease up: quiesce the worker, join it, release.
    Leave { within: Duration, by: Arc<str>, reason: Arc<str>, trace: TraceContext },
    /// The worker's time to quiesce is over.
    QuiesceOver,
    /// The worker should have been joined by now.
    Overrun,
    /// The store answered the release.
    Released(Release),
}

#[cfg(feature = "cluster")]
impl ractor::Message for HolderMsg {}

pub(crate) struct LeaseHolder;

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for LeaseHolder {
    type Msg = HolderMsg;
    type State = Book;
    type Arguments = HolderArgs;

    async fn pre_start(&self, me: ActorRef<HolderMsg>, args: HolderArgs) -> Result<Book, ActorProcessingErr> {
        Ok(Book::open(me, args))
    }

    /// The renewer is spawned here, inside the supervisor, so that no news of it can come before itself.
    async fn post_start(&self, me: ActorRef<HolderMsg>, book: &mut Book) -> Result<(), ActorProcessingErr> {
        if let Some((renewer, args)) = book.renewer_to_be() {
            let (actor, _) = Actor::spawn_linked(None, renewer, args, me.get_cell()).await?;
            book.renewer = Some(actor);
        }
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<HolderMsg>,
        msg: HolderMsg,
        book: &mut Book,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            HolderMsg::Mustered { tell } => book.mustered(tell),
            HolderMsg::Stood(standing) => book.stood(standing),
            HolderMsg::LastCall { within } => book.last_call(within),
            HolderMsg::Doubted(record) => book.doubted(record.as_deref()),
            HolderMsg::Hand(msg) => book.handed(msg),
            HolderMsg::WorkerEnded(outcome) => book.worker_ended(outcome),
            HolderMsg::WorkerJoined { not_started } => book.worker_joined(not_started),
            HolderMsg::TaskPanicked { message } => book.task_panicked(message),
            HolderMsg::Leave { within, by, reason, trace } => book.leave(within, by, reason, trace),
            HolderMsg::QuiesceOver => book.quiesce_over(),
            HolderMsg::Overrun => book.overrun(),
            HolderMsg::Released(answer) => book.released(answer),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<HolderMsg>,
        event: SupervisionEvent,
        book: &mut Book,
    ) -> Result<(), ActorProcessingErr> {
        if ended(event).is_some() {
            // It has one child.
            book.renewer_ended();
        }
        Ok(())
    }
}
