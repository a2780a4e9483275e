//! A client of one replica: a WebSocket that resumes where it was when its connection breaks.

use super::{directory::Directory, event::Stamped, ledger::Ledger};
use crate::clock::Stamp;
use futures_util::StreamExt;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle};
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Error, Message},
};

/// A running client. Dropping it disconnects it.
#[derive(Debug)]
pub struct Client {
    /// Whose client it is.
    pub of: String,
    ledger: Arc<Mutex<Ledger>>,
    last: watch::Receiver<u64>,
    running: JoinHandle<()>,
}

impl Client {
    /// Connects to `replica`, wherever the directory says it is, and again whenever the connection breaks.
    #[must_use]
    pub fn connect(replica: &str, directory: Directory) -> Self {
        let ledger: Arc<Mutex<Ledger>> = Arc::default();
        let (bell, last) = watch::channel(0);
        let running = tokio::spawn({
            let (of, ledger) = (replica.to_owned(), Arc::clone(&ledger));
            async move {
                loop {
                    let _ = listen(&of, &directory, &ledger, &bell).await;
                    tokio::time::sleep(RETRY).await;
                }
            }
        });
        Self { of: replica.to_owned(), ledger, last, running }
    }

    /// Waits until event `seq` has come; the caller bounds the wait.
    pub async fn reach(&self, seq: u64) {
        let mut last = self.last.clone();
        // The sender lives as long as the task, which ends only with this value.
        let _ = last.wait_for(|last| *last >= seq).await;
    }

    /// What it got until now.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        lock(&self.ledger).clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.running.abort();
    }
}

const RETRY: Duration = Duration::from_millis(50);

/// One connection, until it breaks.
async fn listen(
    of: &str,
    directory: &Directory,
    ledger: &Mutex<Ledger>,
    bell: &watch::Sender<u64>,
) -> Result<(), Error> {
    let Some(addr) = directory.find(of) else { return Ok(()) };
    let after = lock(ledger).last();
    let (mut socket, _) = connect_async(format!("ws://{addr}/ws?after={after}")).await?;
    lock(ledger).connections += 1;
    while let Some(message) = socket.next().await {
        // Anything that is not an event ends the connection, and shows up as a missing event if it was one.
        let Message::Text(text) = message? else { continue };
        let Ok(event) = serde_json::from_str::<Stamped>(&text) else { return Ok(()) };
        let last = {
            let mut ledger = lock(ledger);
            ledger.enter(Stamp::now(), event);
            ledger.last()
        };
        bell.send_replace(last);
    }
    Ok(())
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fanout::{endpoint::Endpoint, event::Event, gate::Gate};
    use leasehold::Fence;
    use std::{net::SocketAddr, path::Path};
    use tokio::net::TcpListener;

    /// A replica that already has `events` events, and can be ended like a killed one.
    async fn replica(
        journal: &Path,
        events: std::ops::RangeInclusive<u64>,
    ) -> (SocketAddr, tokio::runtime::Runtime) {
        let mut gate = Gate::open(journal).unwrap();
        let delivery = events.map(|seq| Event { seq, payload: format!("event {seq}") }).collect();
        gate.deliver(Fence::new(1).unwrap(), delivery).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().into_std().unwrap();
        let addr = listener.local_addr().unwrap();
        runtime.spawn(async move {
            axum::serve(TcpListener::from_std(listener).unwrap(), Endpoint::new(gate).router()).await
        });
        (addr, runtime)
    }

    #[tokio::test]
    async fn a_client_resumes_at_the_restarted_replica_and_sees_every_event_once() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("r1");
        let directory = Directory::default();
        let (addr, first) = replica(&journal, 1..=500).await;
        directory.enter("r1", addr);
        let client = Client::connect("r1", directory.clone());
        tokio::time::timeout(Duration::from_secs(20), client.reach(500)).await.unwrap();

        first.shutdown_background();
        let (addr, second) = replica(&journal, 501..=700).await;
        directory.enter("r1", addr);
        tokio::time::timeout(Duration::from_secs(20), client.reach(700)).await.unwrap();
        let ledger = client.ledger();
        assert_eq!((ledger.count(), &ledger.breaches[..]), (700, &[][..]));
        assert_eq!(ledger.connections, 2);
        second.shutdown_background();
    }
}
