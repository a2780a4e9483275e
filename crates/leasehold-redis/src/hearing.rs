//! What is heard: one connection a process, on which the server tells what happens.
//!
//! ```text
//! Hearing ── orders ──► attend   one task: it alone talks and listens on the connection
//!                       ├─ ear      the connection and its subscriptions
//!                       ├─ watches  who watches what, and what was shown
//!                       └─ inboxes  whose letters
//! ```
//!
//! The task begins when something is to be heard, on the runtime of whoever asks first, and ends with the store. If that
//! runtime ends before, the next one who asks begins it anew.

mod attend;
mod ear;
mod inboxes;
mod watches;

use crate::{error::Failure, link::Link};
use leasehold_core::{Inbox, ReplicaId, Scope, StoreErrorKind, Watch};
use std::sync::{Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// The way to the task that hears. The task ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Hearing {
    link: Link,
    // A std mutex: held to look and to set, never over an await.
    orders: Mutex<Option<mpsc::UnboundedSender<Order>>>,
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
    /// Nothing is heard until something is asked for.
    pub(crate) fn new(link: Link) -> Self {
        Self { link, orders: Mutex::default() }
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
        // A task that is gone has no witness to connect: the next acquire begins another one.
        self.task().send(Order::Rewitness).ok();
    }

    /// The way to the task, which is started if there is none.
    fn task(&self) -> mpsc::UnboundedSender<Order> {
        // A panic cannot leave half a sender behind.
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        match &*orders {
            Some(sender) if !sender.is_closed() => sender.clone(),
            _ => {
                let (sender, asked) = mpsc::unbounded_channel();
                tokio::spawn(attend::attend(self.link.clone(), asked));
                orders.insert(sender).clone()
            }
        }
    }

    async fn order<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<T, Failure>>) -> Order,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        self.task().send(order(answer)).map_err(|_| Failure::from(StoreErrorKind::Closed))?;
        answered.await.unwrap_or_else(|_| Err(StoreErrorKind::Closed.into()))
    }
}
