//! One connection through a proxy.

use super::{
    Shared,
    orders::{Counts, Orders, Way},
};
use std::{
    io,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
};

/// How one direction of a connection ended.
enum End {
    /// The sender closed it, or it failed by itself.
    Closed,
    /// The proxy closes both sides in order: what was passed on arrives, and then the end.
    Truncated,
    /// The proxy resets the client. The server sees an ordinary end, so that it surely reads what came before.
    Cut,
    /// The proxy resets both sides.
    Reset,
}

/// Serves one client until either side is done, or an order breaks the connection.
pub(super) async fn serve(mut client: TcpStream, shared: Arc<Shared>) {
    let mut orders = shared.orders.subscribe();
    let generation = orders.borrow_and_update().generation;
    if orders.borrow().refuse {
        Counts::add(&shared.counts.broken, 1);
        return reset(&client);
    }
    let Ok(mut server) = TcpStream::connect(shared.upstream).await else { return reset(&client) };
    // Small commands at once, as clients of stores send them.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));

    let losing_reply = AtomicBool::new(false);
    let end = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let pump = |way| Pump {
            way,
            shared: &shared,
            orders: shared.orders.subscribe(),
            losing_reply: &losing_reply,
            truncation: shared.orders.borrow().truncation,
            carried: 0,
        };
        let up = pump(Way::Up).run(from_client, to_server);
        let down = pump(Way::Down).run(from_server, to_client);
        let both = async {
            // A side that only closed lets the other one finish, as half-closed connections do.
            tokio::pin!(up, down);
            let (first, up_ended) = tokio::select! {
                end = &mut up => (end, true),
                end = &mut down => (end, false),
            };
            match (first, up_ended) {
                (End::Closed, true) => down.await,
                (End::Closed, false) => up.await,
                (broken, _) => broken,
            }
        };
        tokio::select! {
            end = both => end,
            _ = orders.wait_for(|orders| orders.generation != generation) => End::Reset,
        }
    };
    if !matches!(end, End::Closed) {
        Counts::add(&shared.counts.broken, 1);
    }
    if matches!(end, End::Cut | End::Reset) {
        reset(&client);
    }
    if matches!(end, End::Reset) {
        reset(&server);
    }
}

/// The close that follows sends RST, not FIN.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}

struct Pump<'a> {
    way: Way,
    shared: &'a Shared,
    orders: watch::Receiver<Orders>,
    losing_reply: &'a AtomicBool,
    truncation: u64,
    carried: usize,
}

impl Pump<'_> {
    async fn run(mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> End {
        let mut chunk = vec![0; 16 * 1024];
        // What came of a command that is not whole yet.
        let mut pending = Vec::new();
        loop {
            let read = match from.read(&mut chunk).await {
                Ok(0) | Err(_) => return self.close(to, &pending).await,
                Ok(read) => &chunk[..read],
            };
            let passed = match self.way {
                Way::Down if self.losing_reply.load(Ordering::SeqCst) => {
                    Counts::add(&self.shared.counts.swallowed, read.len());
                    return End::Cut;
                }
                Way::Down => self.pass(read, &mut to).await,
                Way::Up => {
                    pending.extend_from_slice(read);
                    self.pass_commands(&mut pending, &mut to).await
                }
            };
            match passed {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(_) => return End::Closed,
            }
        }
    }

    /// The end of the sender's bytes. It does not get through a black hole either.
    async fn close(mut self, mut to: WriteHalf<'_>, pending: &[u8]) -> End {
        let way = self.way;
        let open = self.orders.wait_for(|orders| !orders.lane(way).swallow && !orders.lane(way).hold).await;
        drop(open);
        let _ = to.write_all(pending).await;
        let _ = to.shutdown().await;
        End::Closed
    }

    /// Passes on each whole command; says if the connection ends with one.
    async fn pass_commands(
        &mut self,
        pending: &mut Vec<u8>,
        to: &mut WriteHalf<'_>,
    ) -> io::Result<Option<End>> {
        while let Some(len) = self.shared.framing.first(pending) {
            let command: Vec<u8> = pending.drain(..len).collect();
            let ambushed = self.count(&command);
            if ambushed == Some(true) {
                // Before the command is sent: its reply may come back at once.
                self.losing_reply.store(true, Ordering::SeqCst);
            }
            let passed = self.pass(&command, to).await?;
            if passed.is_some() {
                return Ok(passed);
            }
            if ambushed == Some(false) {
                return Ok(Some(End::Cut));
            }
        }
        Ok(None)
    }

    /// `Some` if this is the command that an ambush waited for, and whether its reply is to be lost.
    fn count(&self, command: &[u8]) -> Option<bool> {
        Counts::add(&self.shared.counts.commands, 1);
        let mut ambush = self.shared.ambush.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = ambush.as_mut().filter(|waiting| waiting.waits_for(command))?;
        waiting.left = waiting.left.saturating_sub(1);
        if waiting.left > 0 {
            return None;
        }
        ambush.take().map(|sprung| sprung.lose_reply)
    }

    /// Passes bytes on as the orders say; says if the connection ends with them.
    async fn pass(&mut self, bytes: &[u8], to: &mut WriteHalf<'_>) -> io::Result<Option<End>> {
        let way = self.way;
        let delay = self.orders.borrow().lane(way).delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let lane = match self.orders.wait_for(|orders| !orders.lane(way).hold).await {
            Ok(orders) => {
                if orders.truncation != self.truncation {
                    self.truncation = orders.truncation;
                    self.carried = 0;
                }
                orders.lane(way).clone()
            }
            // The proxy is gone.
            Err(_) => return Ok(Some(End::Reset)),
        };
        if lane.swallow {
            Counts::add(&self.shared.counts.swallowed, bytes.len());
            return Ok(None);
        }
        let room = lane.truncate.map_or(usize::MAX, |after| after.saturating_sub(self.carried));
        let fitting = &bytes[..bytes.len().min(room)];
        to.write_all(fitting).await?;
        self.carried += fitting.len();
        // Cut exactly at the limit, so that a test can cut after every byte of a message, the last one included.
        let cut = lane.truncate.is_some_and(|after| self.carried >= after);
        Ok(cut.then_some(End::Truncated))
    }
}
