//! Workers: what runs while a lease is held.
//!
//! A worker is the renewer's child in the supervision tree, so that whatever ends the renewer ends the worker inside
//! ractor's lifecycle guard, with no mailbox in between (I5).

mod crew;
mod task;

pub(crate) use crew::{ActorCrew, Crew, Mustered};
pub use task::BoxError;
pub(crate) use task::{TaskCrew, Work};

use crate::term::Scope;
use leasehold_core::Note;
use ractor::RpcReplyPort;
use std::{fmt, sync::Arc, time::Duration};

/// An actor that runs while a lease is held.
///
/// It is spawned for each term, with its own [`Term`](crate::Term), and ends with it. It ends the term itself by
/// stopping (`myself.stop(None)`); the lease is then released. `post_stop` is a courtesy: it does not run when the
/// actor is killed, so nothing that must happen belongs there.
///
/// ```
/// use leasehold::{Notice, Term, Worker};
/// use ractor::{Actor, ActorProcessingErr, ActorRef};
///
/// struct Indexer;
/// enum IndexerMsg { Index, Lease(Notice) }
/// # #[cfg(feature = "cluster")]
/// # impl ractor::Message for IndexerMsg {}
///
/// # #[cfg_attr(feature = "async-trait", ractor::async_trait)]
/// impl Actor for Indexer {
///     type Msg = IndexerMsg;
///     type State = Term;
///     type Arguments = Term;
///
///     async fn pre_start(&self, me: ActorRef<IndexerMsg>, term: Term) -> Result<Term, ActorProcessingErr> {
///         me.cast(IndexerMsg::Index)?;
///         Ok(term)
///     }
///
///     async fn handle(&self, me: ActorRef<IndexerMsg>, msg: IndexerMsg, term: &mut Term) -> Result<(), ActorProcessingErr> {
///         match msg {
///             IndexerMsg::Index => {
///                 let permit = term.check()?;
///                 // … index one document, presenting permit.fence() to the index …
///                 # let _ = permit;
///             }
///             IndexerMsg::Lease(Notice::Quiesce { done, .. }) => {
///                 let _ = done.send(None);
///                 me.stop(None);
///             }
///             IndexerMsg::Lease(_) => {}
///         }
///         Ok(())
///     }
/// }
///
/// impl Worker for Indexer {
///     fn notice(notice: Notice) -> IndexerMsg { IndexerMsg::Lease(notice) }
/// }
/// ```
pub trait Worker: ractor::Actor {
    /// Wraps what the lease has to say into the actor's own message.
    fn notice(notice: Notice) -> Self::Msg;
}

/// What a lease tells its worker.
#[non_exhaustive]
pub enum Notice {
    /// Finish the unit of work in hand, answer `done` with a note for the next term (or `None`), and stop.
    Quiesce {
        /// A worker that has not stopped by then is killed.
        within: Duration,
        /// Takes the note, of at most 256 KiB; a larger one is dropped with a warning.
        done: RpcReplyPort<Option<Vec<u8>>>,
    },
    /// Go on: nobody takes over after all. Comes only after a `Quiesce`. A worker that has not begun to end answers `done` and
    /// works on; one that cannot go on any more ends as it was asked to, and drops `done`.
    Resume {
        /// Says that it goes on.
        done: RpcReplyPort<()>,
    },
    /// What the term before left. Sent once, before everything else, if there is something.
    Inherited {
        /// The note.
        note: Note,
    },
    /// The last renewal did not succeed. The lease is still held.
    Jeopardy {
        /// Until the end of trust. What cannot be finished by then should not begin.
        remaining: Duration,
    },
    /// Show that you move. Sent only with renewals on a runtime of their own.
    Pulse(Pulse),
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quiesce { within, .. } => write!(f, "Quiesce within {within:?}"),
            Self::Resume { .. } => f.write_str("Resume"),
            Self::Inherited { note } => write!(f, "Inherited {note:?}"),
            Self::Jeopardy { remaining } => write!(f, "Jeopardy with {remaining:?} left"),
            Self::Pulse(_) => f.write_str("Pulse"),
        }
    }
}

/// A question whether the worker moves. Dropping it unanswered is no answer.
pub struct Pulse(Arc<Scope>);

impl Pulse {
    pub(crate) const fn new(scope: Arc<Scope>) -> Self {
        Self(scope)
    }

    /// Answers that it does.
    pub fn beat(self) {
        self.0.beat();
    }
}

impl fmt::Debug for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pulse")
    }
}
