//! A worker actor with habits, which notes what it is told.

use leasehold::{Notice, Term, Worker};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{
    future::pending,
    sync::{Arc, Mutex},
};

/// An actor as a worker, told what to do, and noting what it is told.
pub(crate) struct Clockwork {
    term: Term,
    habits: Habits,
    notes: Notes,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Habits {
    /// Does as it is told.
    Obeys,
    /// Ignores every notice.
    Deaf,
    /// Fails in `pre_start`.
    FailsToStart,
    /// Never gets through its `pre_start`.
    HangsInStart,
}

pub(crate) type Notes = Arc<Mutex<Vec<String>>>;

pub(crate) enum Tick {
    Told(Notice),
}

#[cfg(feature = "cluster")]
impl ractor::Message for Tick {}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Clockwork {
    type Msg = Tick;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Tick>, (): ()) -> Result<(), ActorProcessingErr> {
        match self.habits {
            Habits::FailsToStart => Err("planned: it does not start".into()),
            Habits::HangsInStart => pending().await,
            Habits::Obeys | Habits::Deaf => Ok(()),
        }
    }

    async fn handle(
        &self,
        me: ActorRef<Tick>,
        Tick::Told(notice): Tick,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let note = format!("{notice:?}");
        self.notes.lock().unwrap().push(note);
        if self.habits == Habits::Deaf {
            return Ok(());
        }
        match notice {
            Notice::Quiesce { done, .. } => {
                assert!(self.term.check().is_ok());
                let _ = done.send(Some(format!("left by {}", self.term.fence()).into_bytes()));
                me.stop(None);
            }
            Notice::Pulse(pulse) => pulse.beat(),
            _ => {}
        }
        Ok(())
    }
}

impl Worker for Clockwork {
    fn notice(notice: Notice) -> Tick {
        Tick::Told(notice)
    }
}

pub(crate) fn clockwork(
    habits: Habits,
    notes: &Notes,
) -> impl Fn(Term) -> (Clockwork, ()) + Send + Sync + 'static {
    let notes = notes.clone();
    move |term| (Clockwork { term, habits, notes: notes.clone() }, ())
}
