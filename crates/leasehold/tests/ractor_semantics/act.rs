//! What a scripted actor can be told to do in a hook.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc;

use ractor::{ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use super::player::Cue;

type Doing = Pin<Box<dyn Future<Output = Result<(), ActorProcessingErr>> + Send>>;

/// Something to do once, inside a hook.
pub(super) struct Act(Box<dyn FnOnce(ActorRef<Cue>) -> Doing + Send>);

impl Act {
    pub(super) fn new<F, D>(act: F) -> Self
    where
        F: FnOnce(ActorRef<Cue>) -> D + Send + 'static,
        D: Future<Output = Result<(), ActorProcessingErr>> + Send + 'static,
    {
        Self(Box::new(move |me| Box::pin(act(me))))
    }

    pub(super) fn begin(self, me: ActorRef<Cue>) -> Doing {
        (self.0)(me)
    }
}

/// Does nothing and returns.
pub(super) fn nothing() -> Act {
    Act::new(|_| async { Ok(()) })
}

/// Awaits what never comes.
pub(super) fn forever() -> Act {
    Act::new(|_| std::future::pending())
}

/// Returns the error "failed".
pub(super) fn fail() -> Act {
    Act::new(|_| async { Err("failed".into()) })
}

/// Panics with "panicked".
pub(super) fn panic() -> Act {
    Act::new(|_| async { panic!("panicked") })
}

/// Awaits the sender's word, or its drop.
pub(super) fn gated() -> (oneshot::Sender<()>, Act) {
    let (open, gate) = oneshot::channel();
    let act = Act::new(|_| async {
        // Either outcome opens the gate.
        let _ = gate.await;
        Ok(())
    });
    (open, act)
}

/// Holds its thread until the sender speaks or is dropped, then awaits once and goes on.
pub(super) fn blocking() -> (mpsc::Sender<()>, Act) {
    let (open, gate) = mpsc::channel::<()>();
    let act = Act::new(|_| async move {
        let _ = gate.recv();
        tokio::task::yield_now().await;
        Ok(())
    });
    (open, act)
}
