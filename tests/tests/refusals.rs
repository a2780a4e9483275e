//! Stores that fail whoever asks, as real processes meet them: an error is not a lease (case B14).
#![allow(clippy::unwrap_used, reason = "a test panics by design, in its helpers too")]

use leasehold_testkit::redis::Redis;
use leasehold_tests::{Backend, Deadline, Site, What};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};
use tokio::runtime::Runtime;

/// What a server of the test does with each connection.
type Conduct = fn(TcpStream);

/// A server that lives as long as the test's process.
fn server(conduct: Conduct) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let addr = listener.local_addr().expect("a bound address");
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || conduct(connection));
        }
    });
    addr
}

fn asked(mut connection: &TcpStream) -> bool {
    connection.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0)
}

fn silent(connection: TcpStream) {
    while asked(&connection) {}
}

fn garbage(mut connection: TcpStream) {
    while asked(&connection) && connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n\0\xff").is_ok() {}
}

/// The connection breaks in the middle of a reply, in each of the protocols.
fn half(mut connection: TcpStream) {
    if asked(&connection) {
        let _ = connection.write_all(b"*3\r\n$100\r\nheld");
    }
}

/// Nothing is begun, and the process says what failed, and where, and ends with a failure.
fn begins_nothing(address: &str, place: &str) {
    let site = Site::at(address.to_owned(), env!("CARGO_BIN_EXE_replica"));
    let mut replica = site.replica("a").hold_once();
    let told = replica.wait("what failed", |said| matches!(said.what, What::Failed { .. }));
    let What::Failed { error } = told.what else { unreachable!() };
    assert!(error.contains(place), "{address}: {error}");
    assert_eq!(replica.exit().code(), Some(1), "{address}");
    assert_eq!(replica.count(has_begun), 0, "{address}");
    assert!(!replica.complaints().contains("panicked"), "{address}: {}", replica.complaints());
}

fn has_begun(what: &What) -> bool {
    matches!(what, What::Began { .. } | What::Acquired { .. })
}

/// On each kind of server.
fn begins_nothing_at(server: &str) {
    begins_nothing(&format!("redis://{server}"), server);
    begins_nothing(&format!("postgres://me@{server}/leases?sslmode=disable"), server);
}

#[test]
fn nobody_listens() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    begins_nothing_at(&closed.to_string());
}

#[test]
fn the_name_is_unknown() {
    begins_nothing_at("store.invalid:7000");
}

#[test]
fn the_server_is_silent() {
    begins_nothing_at(&server(silent).to_string());
}

#[test]
fn the_server_is_no_store() {
    begins_nothing_at(&server(garbage).to_string());
}

#[test]
fn the_connection_breaks_in_the_middle_of_a_reply() {
    begins_nothing_at(&server(half).to_string());
}

#[test]
fn the_password_is_wrong() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Redis::new().password("right").start()).unwrap();
    let place = server.addr().to_string();
    begins_nothing(&format!("redis://:wrong@{place}"), &place);
}

#[test]
fn the_file_is_something_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leases.db");
    std::fs::write(&file, "this is no database, and long enough to be looked at. ".repeat(40)).unwrap();
    begins_nothing(&format!("sqlite:{}", file.display()), "leases.db");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("this is no database"), "left as it was");
}

/// The lease is free, and every bid for it fails: those who want it go on asking, and nobody works.
#[test]
fn a_lease_that_the_store_cannot_grant_is_nobodys() {
    let site = Site::new(Backend::Redis, env!("CARGO_BIN_EXE_replica"));
    let elect = |id: &str| site.replica(id).ttl(Duration::from_millis(500)).elect();
    let mut a = elect("a");
    let first = a.acquired().fence;
    let mut b = elect("b");
    b.campaigning();
    let set = |n| drop(site.on_redis(|server| server.cli(&["CONFIG", "SET", "min-replicas-to-write", n])));
    set("1");
    a.lost(first);
    a.campaigning();
    site.look_until_vacant();
    let refused =
        || site.on_redis(|server| errors(&server.cli(&["INFO", "errorstats"]).text(), "NOREPLICAS"));
    let before = refused();
    Deadline::patient().poll("bids are refused", || (refused() > before + 6).then_some(()));
    // One term of two lines: it was granted, and its worker began.
    assert_eq!((a.count(has_begun), b.count(has_begun)), (2, 0), "{:?} {:?}", a.said(), b.said());
    set("0");
    let second = site.look_until("somebody leads again", |glance| glance.fence() > first);
    assert!(second.fence() > first);
}

/// How often a server answered with an error of this name.
fn errors(info: &str, name: &str) -> u64 {
    let prefix = format!("errorstat_{name}:count=");
    let count = info.lines().find_map(|line| line.strip_prefix(&prefix));
    count.map_or(0, |count| count.trim().parse().expect("a count"))
}
