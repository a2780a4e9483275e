//! A TCP proxy that breaks connections in every way that networks do.

mod connection;
mod framing;
mod orders;

pub use framing::Framing;
pub use orders::Direction;

use orders::{Ambush, Counts, Orders};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// Stands between clients and one server, on a port of its own. Forwards faithfully until told otherwise; ends, with
/// all its connections, when it is dropped.
///
/// Delays and black holes act on connections that are open as well as on those to come.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    framing: Framing,
    // A watch, so that a pump that sleeps or is held notices new orders at once.
    orders: watch::Sender<Orders>,
    ambush: Mutex<Option<Ambush>>,
    counts: Counts,
}

impl Proxy {
    /// A proxy in front of `upstream`, which counts every chunk that a client sends as one command.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start(upstream: SocketAddr) -> io::Result<Self> {
        Self::framed(upstream, Framing::Chunks).await
    }

    /// A proxy that knows where a command ends.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn framed(upstream: SocketAddr, framing: Framing) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream,
            framing,
            orders: watch::Sender::new(Orders::default()),
            ambush: Mutex::default(),
            counts: Counts::default(),
        });
        let listening = tokio::spawn(listen(listener, shared.clone()));
        Ok(Self { addr, shared, listening })
    }

    /// Where clients connect.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything in this direction comes so much later.
    pub fn delay(&self, direction: Direction, by: Duration) {
        self.order(|orders| direction.each(|way| orders.way(way).delay = by));
    }

    /// Everything in this direction is swallowed, and TCP stays up: the connection is half open, or dead both ways
    /// while each side believes in it. What was swallowed is gone for good.
    pub fn blackhole(&self, direction: Direction) {
        self.order(|orders| direction.each(|way| orders.way(way).swallow = true));
    }

    /// Everything in this direction waits, and arrives late after [`Proxy::heal`], as after a partition that TCP
    /// survived.
    pub fn hold(&self, direction: Direction) {
        self.order(|orders| direction.each(|way| orders.way(way).hold = true));
    }

    /// Every connection may carry so many more bytes in this direction; then it is closed, in the middle of a message.
    pub fn truncate(&self, direction: Direction, after: usize) {
        self.order(|orders| {
            direction.each(|way| orders.way(way).truncate = Some(after));
            orders.truncation += 1;
        });
    }

    /// Resets every open connection.
    pub fn reset(&self) {
        self.order(|orders| orders.generation += 1);
    }

    /// New connections are reset as soon as they are made, as by a server that has no room.
    pub fn refuse(&self) {
        self.order(|orders| orders.refuse = true);
    }

    /// The `k`th command from now, over all connections, reaches the server; right then its connection is reset, so that
    /// nobody can tell whether it was carried out. `k` counts from 1.
    pub fn cut_after_command(&self, k: u64) {
        self.cut_after(k, "");
    }

    /// As [`Proxy::cut_after_command`], for the `k`th command that holds these bytes anywhere, in letters of either case:
    /// the name of a command, or a key. The proxy must know where a command ends.
    pub fn cut_after(&self, k: u64, word: &str) {
        self.lie_in_wait(Ambush { left: k, lose_reply: false, word: word.into() });
    }

    /// The `k`th command from now, over all connections, is carried out: its reply comes back to the proxy and is
    /// swallowed, and the connection is reset. `k` counts from 1.
    pub fn lose_reply(&self, k: u64) {
        self.lose_reply_to(k, "");
    }

    /// As [`Proxy::lose_reply`], for the `k`th command that holds these bytes anywhere, in letters of either case. Replies
    /// to earlier commands of that connection that are not back yet are lost with it.
    pub fn lose_reply_to(&self, k: u64, word: &str) {
        self.lie_in_wait(Ambush { left: k, lose_reply: true, word: word.into() });
    }

    /// Ends all faults. What was held is delivered; what was swallowed is gone.
    pub fn heal(&self) {
        *self.shared.ambush.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.order(Orders::heal);
    }

    /// How many connections were made.
    #[must_use]
    pub fn connections(&self) -> u64 {
        Counts::read(&self.shared.counts.connections)
    }

    /// How many commands reached the server, or were swallowed on their way.
    #[must_use]
    pub fn commands(&self) -> u64 {
        Counts::read(&self.shared.counts.commands)
    }

    /// How many bytes were swallowed. A test whose black hole swallowed nothing has shown nothing.
    #[must_use]
    pub fn swallowed(&self) -> u64 {
        Counts::read(&self.shared.counts.swallowed)
    }

    /// How many connections this proxy broke.
    #[must_use]
    pub fn broken(&self) -> u64 {
        Counts::read(&self.shared.counts.broken)
    }

    fn order(&self, change: impl FnOnce(&mut Orders)) {
        self.shared.orders.send_modify(change);
    }

    fn lie_in_wait(&self, ambush: Ambush) {
        *self.shared.ambush.lock().unwrap_or_else(PoisonError::into_inner) = Some(ambush);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, and every connection with it.
    let mut open = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                Counts::add(&shared.counts.connections, 1);
                open.spawn(connection::serve(client, shared.clone()));
                while open.try_join_next().is_some() {}
            }
            // Out of descriptors, for one: it passes when connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
