//! Work under the lock of a PostgreSQL session, and what becomes of it (B17, B18, B46).

use leasehold::session_lock::{
    self, Config, NotLocked, SessionHoldError, SessionLock, SessionLost, WantedLock,
};
use leasehold_testkit::{
    Proxy,
    faults::Direction,
    postgres::{Postgres, PostgresServer},
};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";

async fn take(url: &str) -> Result<SessionLock, NotLocked> {
    let config = Config::parse(url).expect("an address");
    WantedLock::new("nightly").silence(session_lock::MIN_SILENCE).try_once().open(&config).await
}

async fn server() -> PostgresServer {
    Postgres::new().start().await.expect("a server")
}

async fn within<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), what).await.expect("it hangs")
}

async fn until(server: &PostgresServer, statement: &str, wanted: &str) {
    within(async {
        while server.sql(statement) != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Says when it is dropped.
struct Alive(Arc<AtomicBool>);

impl Alive {
    fn new() -> (Self, Arc<AtomicBool>) {
        let alive = Arc::new(AtomicBool::new(true));
        (Self(alive.clone()), alive)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_ends_gives_the_lock_back_after_all_that_it_spawned_has_ended() {
    // I6
    let server = server().await;
    let lock = take(&server.url()).await.unwrap();
    let fence = lock.fence();
    let (guard, alive) = Alive::new();
    let done = session_lock::hold(lock, move |term| async move {
        assert_eq!((term.name().as_str(), term.fence()), ("nightly", fence));
        assert_eq!(term.check().unwrap().fence(), fence);
        term.spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        "output"
    });
    let done = within(done).await.unwrap();
    assert_eq!((done.output, done.fence), ("output", fence));
    assert!(done.lost.is_none());
    assert!(!alive.load(Ordering::SeqCst));
    assert_eq!(server.sql(LOCKS), "0", "not only soon");
    assert!(take(&server.url()).await.unwrap().fence() > fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_session_drops_the_work_and_its_tasks() {
    // B17, I5: by the server, and by its crash.
    let mut server = server().await;
    for crash in [false, true] {
        let lock = take(&server.url()).await.unwrap();
        let (begun, beginning) = oneshot::channel();
        let ((guard, alive), (other_guard, other_alive)) = (Alive::new(), Alive::new());
        let held = tokio::spawn(session_lock::hold(lock, |term| async move {
            let _guard = guard;
            term.spawn(async move {
                let _guard = other_guard;
                std::future::pending::<()>().await;
            });
            begun.send(term.clone()).ok();
            std::future::pending::<()>().await;
        }));
        let term = within(beginning).await.unwrap();
        if crash {
            server.kill().await;
        } else {
            server.terminate_clients();
        }
        let lost = within(held).await.unwrap().unwrap_err();
        assert!(matches!(lost, SessionHoldError::Lost(SessionLost::Ended { .. })), "{lost}");
        assert!(term.check().unwrap_err().to_string().contains("its session is over"), "{term:?}");
        assert!(!alive.load(Ordering::SeqCst) && !other_alive.load(Ordering::SeqCst));
        if crash {
            server.restart().await.unwrap();
        }
        // The client hears of the end before the server has tidied up.
        until(&server, LOCKS, "0").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_swallows_everything_ends_the_work_by_the_clock() {
    // B18, I4
    let server = server().await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let lock = take(&server.url_at(proxy.addr())).await.unwrap();
    let (begun, beginning) = oneshot::channel();
    let held = tokio::spawn(session_lock::hold(lock, |term| async move {
        begun.send(term).ok();
        std::future::pending::<()>().await;
    }));
    let term = within(beginning).await.unwrap();
    proxy.blackhole(Direction::Both);
    let lost = within(held).await.unwrap().unwrap_err();
    assert!(matches!(lost, SessionHoldError::Lost(SessionLost::Silent { .. })), "{lost}");
    assert!(term.check().is_err());
    proxy.heal();
    proxy.reset();
    until(&server, LOCKS, "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_and_a_dropped_future_give_the_lock_back() {
    // B46
    let server = server().await;
    let lock = take(&server.url()).await.unwrap();
    let panicked = session_lock::hold(lock, |_| async { panic!("in the middle") });
    let panicked: Result<session_lock::Locked<()>, _> = within(panicked).await;
    let panicked = panicked.unwrap_err().to_string();
    assert!(panicked.contains("in the middle"), "{panicked}");
    assert_eq!(server.sql(LOCKS), "0");

    let lock = take(&server.url()).await.unwrap();
    let (guard, alive) = Alive::new();
    let (begun, beginning) = oneshot::channel();
    let held = tokio::spawn(session_lock::hold(lock, |_| async move {
        let _guard = guard;
        begun.send(()).ok();
        std::future::pending::<()>().await;
    }));
    within(beginning).await.unwrap();
    held.abort();
    until(&server, LOCKS, "0").await;
    assert!(!alive.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn work_that_blocks_its_thread_keeps_the_lock_of_a_caller_who_has_gone() {
    // I6: nobody else may begin while it runs.
    let server = server().await;
    let lock = take(&server.url()).await.unwrap();
    let (begun, beginning) = oneshot::channel();
    let (end, ending) = std::sync::mpsc::channel::<()>();
    let held = tokio::spawn(session_lock::hold(lock, move |_| async move {
        begun.send(()).ok();
        tokio::task::block_in_place(|| ending.recv()).ok();
    }));
    within(beginning).await.unwrap();
    held.abort();
    assert!(within(held).await.unwrap_err().is_cancelled());
    let busy = take(&server.url()).await.unwrap_err();
    assert!(matches!(busy, NotLocked::Busy { .. }), "{busy}");
    end.send(()).unwrap();
    until(&server, LOCKS, "0").await;
}
