//! What is heard: one connection a process, on which the server tells what happens.
//!
//! ```text
//! Hearing ── orders ──► attend   one task: it alone talks and listens on the connection
//!                       ├─ ear      the connection and its subscriptions
//!                       ├─ watches  who watches what, and what was shown
//!                       └─ inboxes  whose letters
//! ```
//!
//! The task connects when there is something to hear, and ends with the store.

mod attend;
mod ear;
mod inboxes;
mod watches;

use crate::{error::Failure, link::Link};
use leasehold_core::{Inbox, ReplicaId, Scope, StoreErrorKind, Watch};
use tokio::sync::{mpsc, oneshot};

/// The way to the task that hears. The task ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Hearing {
    orders: mpsc::UnboundedSender<Order>,
}

/// What the task is asked for. Each is answered when it is in place.
enum Order {
    Watch(Scope, oneshot::Sender<Result<Watch, Failure>>),
    Open(ReplicaId, oneshot::Sender<Result<Inbox, Failure>>),
    Witness(oneshot::Sender<Result<String, Failure>>),
    /// A renewal was refused, for the witness is not connected.
    Rewitness,
}

impl Hearing {
    /// Starts the task, on the runtime of the caller. It does nothing until it is asked for something.
    pub(crate) fn start(link: Link) -> Self {
        let (orders, asked) = mpsc::unbounded_channel();
        tokio::spawn(attend::attend(link, asked));
        Self { orders }
    }

    /// Subscribes; the first sightings are the present states.
    pub(crate) async fn watch(&self, scope: Scope) -> Result<Watch, Failure> {
        self.order(|answer| Order::Watch(scope, answer)).await
    }

    /// Opens an inbox, with what waits in it.
    pub(crate) async fn inbox(&self, me: &ReplicaId) -> Result<Inbox, Failure> {
        self.order(|answer| Order::Open(me.clone(), answer)).await
    }

    /// The channel on which this process is heard as long as it lives, subscribed by now. See [`crate::witness`].
    pub(crate) async fn witness(&self) -> Result<String, Failure> {
        self.order(Order::Witness).await
    }

    /// Has the witness connected again.
    pub(crate) fn rewitness(&self) {
        // A task that is gone has ended with the runtime, and the renewals with it.
        self.orders.send(Order::Rewitness).ok();
    }

    async fn order<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<T, Failure>>) -> Order,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(order(answer)).map_err(|_| Failure::from(StoreErrorKind::Closed))?;
        answered.await.unwrap_or_else(|_| Err(StoreErrorKind::Closed.into()))
    }
}
