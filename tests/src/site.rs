//! One test's own store, and the replicas that meet there.

use crate::{
    Backend, Casting, Deadline, FullDisk, WallClock,
    backend::{Housing, Server},
};
use leasehold::{BootClock, Clock, Force, LeaseName, LeaseRecord, LeaseState, ReplicaId, SharedStore};
use leasehold_testkit::{
    postgres::{Postgres, PostgresServer},
    redis::RedisServer,
};
use std::{
    cell::{OnceCell, RefCell},
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The lease that replicas are after unless told otherwise.
pub(crate) const LEASE: &str = "duty";
/// A directory of its own, so that a test may do with it as it likes.
const STORE_DIR: &str = "store";

/// One test's own store, and the directory in which everything of the test lives. Removed with it.
pub struct Site {
    // Dropped in this order: the store before the runtime that it needs, the directory last.
    store: OnceCell<SharedStore>,
    server: RefCell<Server>,
    runtime: Runtime,
    address: String,
    program: &'static str,
    dir: TempDir,
}

/// A record, and between which instants of the host's boot clock it was read.
#[derive(Debug, Clone)]
pub struct Glance {
    /// The record.
    pub record: LeaseRecord,
    before: u64,
    after: u64,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Glance {
    /// The earliest instant at which the claim may expire, unless it is renewed.
    #[must_use]
    pub fn expires_from(&self) -> u64 {
        self.before + nanos(self.record.remaining())
    }

    /// The latest instant at which the present claim may have been granted.
    ///
    /// # Panics
    /// If nobody holds it.
    #[must_use]
    pub fn granted_by(&self) -> u64 {
        match &self.record.state {
            LeaseState::Held { held_for, .. } => self.after - nanos(*held_for),
            other => panic!("nobody holds it: {other:?}"),
        }
    }

    /// The fence of the present claim; 0 if nobody holds it.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.record.claim().map_or(0, |claim| claim.fence.get())
    }
}

impl Site {
    /// A fresh store, for the program `replica` at `program`.
    ///
    /// # Panics
    /// If there is no room for it.
    #[must_use]
    pub fn new(backend: Backend, program: &'static str) -> Self {
        Self::housed(program, async |dir| backend.house(dir).await)
    }

    /// A store on a fresh server that is as described.
    ///
    /// # Panics
    /// If the server cannot be started.
    #[must_use]
    pub fn on_server(postgres: Postgres, program: &'static str) -> Self {
        Self::housed(program, async |_| Housing::on(postgres).await)
    }

    /// The store at an address, whose servers are the test's own.
    ///
    /// # Panics
    /// If there is no room for the test's directory.
    #[must_use]
    pub fn at(address: String, program: &'static str) -> Self {
        Self::housed(program, async |_| Housing { address, server: Server::None })
    }

    fn housed(program: &'static str, house: impl AsyncFnOnce(&Path) -> Housing) -> Self {
        let dir = TempDir::new().expect("a directory for the test");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime for the test");
        let Housing { address, server } = runtime.block_on(house(&dir.path().join(STORE_DIR)));
        Self { store: OnceCell::new(), server: server.into(), runtime, address, program, dir }
    }

    /// A replica to be started here.
    pub fn replica(&self, id: &str) -> Casting {
        Casting::new(self.program, &self.address, id)
    }

    /// Does something with the Redis server of the store.
    ///
    /// # Panics
    /// If the store has none.
    pub fn on_redis<T>(&self, act: impl FnOnce(&RedisServer) -> T) -> T {
        match &*self.server.borrow() {
            Server::Redis(server) => act(server),
            other => panic!("a store on a Redis server, not {other:?}"),
        }
    }

    /// Does something with the PostgreSQL server of the store.
    ///
    /// # Panics
    /// If the store has none.
    pub fn on_postgres<T>(&self, act: impl FnOnce(&PostgresServer) -> T) -> T {
        match &*self.server.borrow() {
            Server::Postgres(server) => act(server),
            other => panic!("a store on a PostgreSQL server, not {other:?}"),
        }
    }

    /// Kills the server of the store, and starts it again.
    ///
    /// # Panics
    /// If the store has none, or it does not come back.
    pub fn restart_server(&self) {
        let mut server = self.server.borrow_mut();
        let restarted = self.runtime.block_on(async {
            match &mut *server {
                Server::Redis(server) => server.restart().await,
                Server::Postgres(server) => server.restart().await,
                Server::None => panic!("a store on a server"),
            }
        });
        restarted.unwrap_or_else(|error| panic!("{error}"));
    }

    /// The test's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A wall clock to start replicas under.
    #[must_use]
    pub fn wall_clock(&self, name: &str) -> WallClock {
        WallClock::new(self.dir(), name)
    }

    /// A disk to start replicas on.
    #[must_use]
    pub fn full_disk(&self, name: &str) -> FullDisk {
        FullDisk::new(self.dir(), name)
    }

    /// Where the store's files are, if it has any.
    #[must_use]
    pub fn store_dir(&self) -> PathBuf {
        self.dir().join(STORE_DIR)
    }

    /// The lease's record, read by the test itself.
    ///
    /// # Panics
    /// If the store cannot be read.
    #[must_use]
    pub fn look(&self) -> Glance {
        let name = LeaseName::new(LEASE).expect("a good name");
        let store = self.store();
        let before = BootClock.now().as_nanos();
        let record = self.runtime.block_on(store.inspect(&name)).expect("a readable store");
        Glance { record, before, after: BootClock.now().as_nanos() }
    }

    /// Ends the present claim, as an operator does.
    ///
    /// # Panics
    /// If nobody holds the lease.
    pub fn force(&self) {
        let name = LeaseName::new(LEASE).expect("a good name");
        let by = ReplicaId::new("operator").expect("a good id");
        let forced = self.runtime.block_on(self.store().force_release(&name, &by, "testing"));
        assert!(matches!(forced, Force::Forced { .. }), "{forced:?}");
    }

    fn store(&self) -> &SharedStore {
        let connect =
            || self.runtime.block_on(leasehold::connect(&self.address)).expect("the test's own store");
        self.store.get_or_init(connect)
    }

    /// Looks until the record `fits`.
    ///
    /// # Panics
    /// If it never does.
    pub fn look_until(&self, what: &str, fits: impl Fn(&Glance) -> bool) -> Glance {
        Deadline::patient().poll(what, || Some(self.look()).filter(|glance| fits(glance)))
    }

    /// Looks until nobody holds the lease.
    ///
    /// # Panics
    /// If somebody holds it for ever.
    pub fn look_until_vacant(&self) -> Glance {
        self.look_until("the lease is vacant", |glance| glance.record.state == LeaseState::Vacant)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Site({})", self.address)
    }
}
