//! The proxy over real sockets, in front of a small real server.

use leasehold_testkit::faults::{Direction, Framing, Proxy};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

const PATIENCE: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(100);

/// A server that answers each line with its number and itself, and counts what it carried out.
async fn echo() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("its address");
    let done = Arc::new(AtomicU64::new(0));
    tokio::spawn({
        let done = done.clone();
        async move {
            loop {
                let (client, _) = listener.accept().await.expect("a client");
                let done = done.clone();
                tokio::spawn(async move {
                    let (read, mut write) = client.into_split();
                    let mut lines = BufReader::new(read).lines();
                    while let Ok(Some(line)) = lines.next_line().await {
                        let n = done.fetch_add(1, Ordering::SeqCst) + 1;
                        if write.write_all(format!("{n} {line}\n").as_bytes()).await.is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    (addr, done)
}

struct Client(BufReader<TcpStream>);

impl Client {
    async fn connect(to: &Proxy) -> Self {
        Self(BufReader::new(TcpStream::connect(to.addr()).await.expect("the proxy listens")))
    }

    async fn send(&mut self, line: &str) -> io::Result<()> {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).await
    }

    async fn reply(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    async fn ask(&mut self, line: &str) -> io::Result<String> {
        self.send(line).await?;
        tokio::time::timeout(PATIENCE, self.reply()).await.expect("an answer or an error")
    }

    async fn hears_nothing(&mut self) -> bool {
        tokio::time::timeout(SHORT, self.reply()).await.is_err()
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test]
async fn a_proxy_forwards_faithfully_until_it_is_told_otherwise() {
    let (server, _) = echo().await;
    let proxy = Proxy::start(server).await.unwrap();
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.ask("a").await.unwrap(), "1 a");
    let large = "x".repeat(300_000);
    assert_eq!(client.ask(&large).await.unwrap(), format!("2 {large}"));
    assert_eq!((proxy.connections(), proxy.swallowed(), proxy.broken()), (1, 0, 0));

    // A client that only closes its sending side still gets its answers.
    client.send("last").await.unwrap();
    client.0.get_mut().shutdown().await.unwrap();
    assert_eq!(client.reply().await.unwrap(), "3 last");
    assert_eq!(client.reply().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_delayed_reply_comes_later_and_the_server_acted_at_once() {
    let (server, done) = echo().await;
    let proxy = Proxy::start(server).await.unwrap();
    let mut client = Client::connect(&proxy).await;
    proxy.delay(Direction::Down, Duration::from_millis(300));
    let asked = tokio::time::Instant::now();
    client.send("a").await.unwrap();
    until("the server acts", || done.load(Ordering::SeqCst) == 1).await;
    assert!(client.hears_nothing().await);
    assert_eq!(client.reply().await.unwrap(), "1 a");
    assert!(asked.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_black_hole_swallows_one_way_or_both_and_the_connection_stays_up() {
    let (server, done) = echo().await;
    let proxy = Proxy::start(server).await.unwrap();

    let mut client = Client::connect(&proxy).await;
    proxy.blackhole(Direction::Up);
    client.send("lost").await.unwrap();
    assert!(client.hears_nothing().await, "and no error either: the connection is half open");
    assert_eq!(done.load(Ordering::SeqCst), 0);
    assert_eq!(proxy.swallowed(), 5);
    proxy.heal();
    assert_eq!(client.ask("heard").await.unwrap(), "1 heard", "what was swallowed is gone, the rest goes on");

    proxy.blackhole(Direction::Down);
    client.send("acted").await.unwrap();
    until("the server acts", || done.load(Ordering::SeqCst) == 2).await;
    assert!(client.hears_nothing().await);

    proxy.blackhole(Direction::Both);
    let mut fresh = Client::connect(&proxy).await;
    fresh.send("nothing").await.unwrap();
    assert!(fresh.hears_nothing().await);
    assert_eq!(done.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_is_held_arrives_late() {
    let (server, done) = echo().await;
    let proxy = Proxy::start(server).await.unwrap();
    let mut client = Client::connect(&proxy).await;
    proxy.hold(Direction::Up);
    client.send("patient").await.unwrap();
    assert!(client.hears_nothing().await);
    assert_eq!(done.load(Ordering::SeqCst), 0);
    proxy.heal();
    assert_eq!(client.reply().await.unwrap(), "1 patient");
}

#[tokio::test]
async fn a_reset_breaks_open_connections_and_new_ones_work() {
    let (server, _) = echo().await;
    let proxy = Proxy::start(server).await.unwrap();
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.ask("a").await.unwrap(), "1 a");
    proxy.reset();
    let error = tokio::time::timeout(PATIENCE, client.reply()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(Client::connect(&proxy).await.ask("b").await.unwrap(), "2 b");

    proxy.refuse();
    let mut refused = Client::connect(&proxy).await;
    assert!(refused.ask("c").await.is_err());
    proxy.heal();
    assert_eq!(Client::connect(&proxy).await.ask("d").await.unwrap(), "3 d");
    assert_eq!(proxy.broken(), 2);
}

#[tokio::test]
async fn a_message_is_truncated_at_every_byte() {
    let (server, _) = echo().await;
    for bytes in 0..=4 {
        let proxy = Proxy::start(server).await.unwrap();
        let mut client = Client::connect(&proxy).await;
        proxy.truncate(Direction::Down, bytes);
        client.send("abc").await.unwrap();
        let mut read = Vec::new();
        let whole = tokio::time::timeout(PATIENCE, client.0.read_to_end(&mut read)).await.unwrap();
        assert!(whole.is_ok(), "an ordinary end, in the middle of a message");
        assert_eq!(read.len(), bytes);
        assert_eq!(proxy.broken(), 1);
    }
}

/// What nobody can tell apart from outside: carried out or not (invariant I7).
#[tokio::test]
async fn the_kth_command_is_cut_off_or_loses_its_reply() {
    let (server, done) = echo().await;
    let proxy = Proxy::framed(server, Framing::Lines).await.unwrap();
    for k in 1..=3 {
        for lose_reply in [true, false] {
            let before = done.load(Ordering::SeqCst);
            if lose_reply {
                proxy.lose_reply(k);
            } else {
                proxy.cut_after_command(k);
            }
            let mut client = Client::connect(&proxy).await;
            for n in 1..k {
                assert!(client.ask(&n.to_string()).await.is_ok(), "commands before the {k}th work");
            }
            assert!(client.ask("the last").await.is_err());
            // It reached the server all the same.
            until("the server acts", || done.load(Ordering::SeqCst) == before + k).await;
            assert!(Client::connect(&proxy).await.ask("after").await.is_ok(), "one connection was broken");
        }
    }
    assert_eq!(proxy.broken(), 6);
}

#[tokio::test]
async fn the_kth_command_of_a_kind_is_found_among_others() {
    let (server, done) = echo().await;
    let proxy = Proxy::framed(server, Framing::Lines).await.unwrap();
    proxy.lose_reply_to(2, "set");
    let mut client = Client::connect(&proxy).await;
    for command in ["get a", "SET a", "get b", "get c"] {
        assert!(client.ask(command).await.is_ok(), "{command}");
    }
    assert!(client.ask("Set b").await.is_err());
    until("the server acts", || done.load(Ordering::SeqCst) == 5).await;
    proxy.cut_after(1, "del");
    let mut client = Client::connect(&proxy).await;
    assert!(client.ask("set c").await.is_ok(), "that is over");
    assert!(client.ask("del a").await.is_err());
    assert_eq!(proxy.broken(), 2);
}

#[tokio::test]
async fn commands_are_told_apart_though_they_come_in_one_piece() {
    let (server, done) = echo().await;
    let proxy = Proxy::framed(server, Framing::Lines).await.unwrap();
    proxy.cut_after_command(2);
    let mut client = Client::connect(&proxy).await;
    client.0.get_mut().write_all(b"1\n2\n3\nunfinished").await.unwrap();
    until("two commands are carried out", || done.load(Ordering::SeqCst) == 2).await;
    while client.reply().await.is_ok() {}
    assert_eq!((proxy.commands(), done.load(Ordering::SeqCst)), (2, 2), "the third was never sent");
}

#[tokio::test]
async fn the_end_of_a_proxy_ends_its_connections() {
    let (server, _) = echo().await;
    let proxy = Proxy::start(server).await.unwrap();
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.ask("a").await.unwrap(), "1 a");
    let addr = proxy.addr();
    drop(proxy);
    assert!(tokio::time::timeout(PATIENCE, client.reply()).await.unwrap().is_err());
    let gone = async { while TcpStream::connect(addr).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, gone).await.expect("the port is free again");
}
