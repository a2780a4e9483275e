//! What the replica is to do: its part, and the orders it gets.

use crate::{cast::Cast, voice::Voice};
use leasehold_tests::Order;
use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};
use tokio::sync::{self, mpsc};

/// The part, and the orders to whichever worker leads.
#[derive(Debug)]
pub(crate) struct Duties {
    pub(crate) cast: Cast,
    pub(crate) voice: Voice,
    // Each term has a worker of its own; one at a time takes the orders.
    orders: sync::Mutex<mpsc::UnboundedReceiver<Order>>,
    leave_to_go: Arc<Go>,
}

/// An order to the process as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessOrder {
    Leave,
    Abandon,
    DropRuntime,
}

#[derive(Debug, Default)]
struct Go {
    given: Mutex<bool>,
    news: Condvar,
}

impl Duties {
    /// Listens for orders from now on: on a thread of its own, which no busy runtime can hold up.
    pub(crate) fn take_up(cast: Cast, voice: Voice) -> (Self, mpsc::UnboundedReceiver<ProcessOrder>) {
        let (to_worker, orders) = mpsc::unbounded_channel();
        let (to_process, process_orders) = mpsc::unbounded_channel();
        let leave_to_go = Arc::<Go>::default();
        let go = leave_to_go.clone();
        thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                let order = line.parse().unwrap_or_else(|error| {
                    eprintln!("replica: {error}");
                    std::process::exit(2)
                });
                // Where nobody listens any more, there is nobody to obey either.
                match order {
                    Order::Go => go.give(),
                    Order::Leave => drop(to_process.send(ProcessOrder::Leave)),
                    Order::Abandon => drop(to_process.send(ProcessOrder::Abandon)),
                    Order::DropRuntime => drop(to_process.send(ProcessOrder::DropRuntime)),
                    order => drop(to_worker.send(order)),
                }
            }
            // Whoever started it is gone.
            std::process::exit(1);
        });
        (Self { cast, voice, orders: sync::Mutex::new(orders), leave_to_go }, process_orders)
    }

    /// The next order to the worker. Dropping the future loses none.
    pub(crate) async fn next(&self) -> Order {
        match self.orders.lock().await.recv().await {
            Some(order) => order,
            // The listener is ending the process.
            None => std::future::pending().await,
        }
    }

    /// Blocks the thread until the leave to go is given, and uses it up.
    pub(crate) fn await_leave_to_go(&self) {
        let go = &self.leave_to_go;
        let given = go.given.lock().unwrap_or_else(PoisonError::into_inner);
        let mut given = go.news.wait_while(given, |given| !*given).unwrap_or_else(PoisonError::into_inner);
        *given = false;
    }
}

impl Go {
    fn give(&self) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.news.notify_all();
    }
}
