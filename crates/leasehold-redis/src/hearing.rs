//! What is heard: one connection a process, on which the server tells what happens.
//!
//! ```text
//! Hearing ── orders ──► attend   one task: it alone talks and listens on the connection
//!                       ├─ ear      the connection and its subscriptions
//!                       ├─ watches  who watches what, and what was shown
//!                       ├─ inboxes  whose letters
//!                       └─ poll     how often the witnesses of others are asked for
//! ```
//!
//! The task begins when something is to be heard, on the runtime of whoever asks first. It ends with the store, wherever it
//! is just then, and its connection with it. If that runtime ends before, the next one who asks begins it anew.

mod attend;
mod ear;
mod inboxes;
mod poll;
mod watches;

use crate::{error::Failure, keys::slot, link::Link, witness::Presence};
use leasehold_core::{Inbox, LeaseName, ReplicaId, Scope, StoreErrorKind, Watch};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

/// The way to the task that hears. The task ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Hearing {
    link: Link,
    presence: Arc<Presence>,
    // A std mutex: held to look and to set, never over an await.
    attendance: Mutex<Option<Attendance>>,
}

/// The task, and where it takes orders.
#[derive(Debug)]
struct Attendance {
    orders: mpsc::UnboundedSender<Order>,
    task: AbortHandle,
}

/// What the task is asked for. Each is answered when it is in place.
#[derive(Debug)]
enum Order {
    Watch(Scope, oneshot::Sender<Result<Watch, Failure>>),
    Open(ReplicaId, oneshot::Sender<Result<Inbox, Failure>>),
    /// For a claim in this slot.
    Witness(u16, oneshot::Sender<Result<(), Failure>>),
    /// A renewal was refused, for the witness is not connected.
    Rewitness,
}

impl Hearing {
    /// Nothing is heard until something is asked for.
    pub(crate) fn new(link: Link) -> Self {
        let presence = Arc::new(Presence::new(link.keys()));
        Self { link, presence, attendance: Mutex::default() }
    }

    /// Subscribes; the first sightings are the present states.
    pub(crate) async fn watch(&self, scope: Scope) -> Result<Watch, Failure> {
        self.order(|answer| Order::Watch(scope, answer)).await
    }

    /// Opens an inbox, with what waits in it.
    pub(crate) async fn inbox(&self, me: &ReplicaId) -> Result<Inbox, Failure> {
        self.order(|answer| Order::Open(me.clone(), answer)).await
    }

    /// The channel on which this process is heard as long as it lives, subscribed by now at the server that has the lease.
    /// See [`crate::witness`].
    pub(crate) async fn witness(&self, lease: &LeaseName) -> Result<String, Failure> {
        let slot = slot(self.link.keys().claim(lease).as_bytes());
        // Many claims are made behind one witness: they need not queue for it.
        if !self.presence.is_seen(slot) {
            self.order(|answer| Order::Witness(slot, answer)).await?;
        }
        Ok(self.presence.channel().to_owned())
    }

    /// Has it looked whether the server sees the witness, and the witness connected again if not.
    pub(crate) fn rewitness(&self) {
        self.send(Order::Rewitness);
    }

    async fn order<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<T, Failure>>) -> Order,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        self.send(order(answer));
        answered.await.unwrap_or_else(|_| Err(StoreErrorKind::Closed.into()))
    }

    /// Gives an order to the task, which is started if there is none.
    fn send(&self, order: Order) {
        // Each change is one assignment, so that a panic leaves it whole.
        let mut attendance = self.attendance.lock().unwrap_or_else(PoisonError::into_inner);
        let order = match &*attendance {
            Some(present) => match present.orders.send(order) {
                Ok(()) => return,
                // It has ended with its runtime.
                Err(mpsc::error::SendError(order)) => order,
            },
            None => order,
        };
        let (orders, asked) = mpsc::unbounded_channel();
        let attending = attend::attend(self.link.clone(), self.presence.clone(), asked);
        let task = tokio::spawn(attending).abort_handle();
        // If this runtime ends, too, whoever waits for the answer is told that the store is closed.
        orders.send(order).ok();
        *attendance = Some(Attendance { orders, task });
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.task.abort();
    }
}
