//! Hearing what a node tells from any thread, where real threads block.

use leasehold::{Event, Happening, Node, SharedStore};
use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};

pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// No event of these tests takes this long, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What a node tells, to be waited for from any thread.
#[derive(Clone)]
pub(crate) struct Ears(Arc<Mutex<mpsc::Receiver<Event>>>);

impl Ears {
    pub(crate) fn open() -> (impl Fn(&Event) + Send + Sync + 'static, Self) {
        let (tell, told) = mpsc::channel();
        (move |event: &Event| drop(tell.send(event.clone())), Self(Arc::new(Mutex::new(told))))
    }

    /// Blocks until it is told; the events before it are passed over.
    pub(crate) fn hear(&self, wanted: impl Fn(&Happening) -> bool) -> Event {
        let told = self.0.lock().unwrap();
        loop {
            let event = told.recv_timeout(PATIENCE).expect("told in time");
            if wanted(&event.what) {
                return event;
            }
        }
    }

    /// What is left to hear, after everything has ended.
    pub(crate) fn rest(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().try_iter().map(|event| event.what.name()).collect()
    }
}

pub(crate) fn runtime(threads: usize) -> Runtime {
    let mut builder = if threads == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.worker_threads(threads.max(1)).enable_all().build().unwrap()
}

pub(crate) async fn node(store: &SharedStore, id: &str) -> (Node, Ears) {
    let (observer, ears) = Ears::open();
    (Node::builder(store.clone()).replica(id).observe(observer).start().await.unwrap(), ears)
}

pub(crate) fn overrun(what: &Happening) -> bool {
    matches!(what, Happening::Overrun { .. })
}
