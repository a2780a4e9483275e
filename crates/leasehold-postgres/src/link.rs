//! Asks the server that is in charge now, and finds it again when it has changed.
//!
//! ```text
//! ask ─► way() ─► the least busy connection of this runtime ────────────────► answer
//!             ├─► all are busy, and more are allowed: one more is dialled meanwhile
//!             └─► there is none: it is dialled, in a task of its own ─┘
//!   an error that says that a connection is no good removes it, and so does silence: the next request takes another one
//! ```
//!
//! A request is one statement, sent without a name, so that a pooler that changes servers between transactions is no
//! hindrance. Whoever drops a request leaves its connection usable: it is probed, and given up if it stays silent. Between
//! two attempts to connect lies a back-off with jitter, so that the replicas of a service do not come back all at once.

mod dial;
mod way;

pub(crate) use dial::{connect, drive, prepared};
pub(crate) use way::Param;

use crate::{
    config::Config,
    error::{Failure, Fault},
    texts::Texts,
};
use dial::Dialling;
use leasehold_core::{AttemptId, StoreErrorKind, backoff::Backoff};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::runtime::{Handle, Id};
use tokio_postgres::Row;
use way::Way;

/// The first and the longest pause between two attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// How often a request is made again that the server undid because of another transaction.
const CONFLICTS: u32 = 5;

/// The way to the server of one store. Cheap to clone. Any number of tasks may ask at once, and drop their requests.
#[derive(Clone)]
pub(crate) struct Link {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    texts: Texts,
    address: Arc<str>,
    // A std mutex: held to look and to set, never over an await.
    present: Mutex<Present>,
}

struct Present {
    /// Connections for each runtime that asks. The task that serves a connection runs where it was made: on a runtime
    /// that is blocked by its work, it would hold up renewals that were put on another one for that very reason.
    berths: Vec<Berth>,
    /// Attempts to connect that failed, one after the other.
    failures: u32,
    backoff: Backoff,
}

/// The connections of one runtime.
struct Berth {
    on: Id,
    ways: Vec<Arc<Way>>,
    dialling: Option<Dialling>,
}

/// Whether a request may be made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It says the same if it was carried out already.
    May,
    /// It would be told something else.
    MustNot,
}

impl Link {
    /// Connects.
    pub(crate) async fn open(config: &Config) -> Result<Self, Fault> {
        let [a, b, c, d, e, f, g, h, ..] = *AttemptId::random().as_bytes();
        // Of the system's randomness: process ids are the same in every container.
        let backoff = Backoff::new(PAUSES.0, PAUSES.1, u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
        let shared = Shared {
            config: config.clone(),
            texts: Texts::new(config.schema()),
            address: config.address(),
            present: Mutex::new(Present { berths: Vec::new(), failures: 0, backoff }),
        };
        // Settings that cannot work are told once, and not as a failure to connect.
        config.tls.connector()?;
        let link = Self { shared: Arc::new(shared) };
        link.way().await?;
        Ok(link)
    }

    /// The store's address without secrets.
    pub(crate) fn address(&self) -> &Arc<str> {
        &self.shared.address
    }

    pub(crate) fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(crate) fn texts(&self) -> &Texts {
        &self.shared.texts
    }

    /// Runs one statement. What the server refuses is a failure with nothing done, unless it had been sent before.
    pub(crate) async fn ask(
        &self,
        sql: &str,
        params: &[Param<'_>],
        again: Again,
    ) -> Result<Vec<Row>, Failure> {
        let patience = self.shared.config.response_timeout;
        let (mut is_second, mut perhaps, mut conflicts) = (false, false, 0);
        loop {
            let told = |Failure { fault, perhaps_done }: Failure| Failure {
                fault,
                // What an earlier sending did, no later refusal undoes.
                perhaps_done: perhaps_done || perhaps,
            };
            let way = self.way().await.map_err(|fault| told(fault.into()))?;
            let failure = match way.ask(sql, params, patience).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            if failure.is_conflict() && conflicts < CONFLICTS {
                conflicts += 1;
                continue;
            }
            if !failure.is_end() {
                return Err(told(failure));
            }
            self.shared.give_up(&way);
            // Servers close idle connections, and nobody notices before the next request. After a silence nobody has the
            // patience to wait as long once more.
            let is_silence = matches!(failure.fault, Fault::Silence(_));
            let may = again == Again::May || !failure.perhaps_done;
            if is_second || is_silence || !may {
                return Err(told(failure));
            }
            (is_second, perhaps) = (true, failure.perhaps_done);
        }
    }

    /// The least busy connection, made if there is none.
    async fn way(&self) -> Result<Arc<Way>, Fault> {
        let mut dialling = {
            let here = Handle::current().id();
            let mut present = self.shared.present();
            present.sweep(here);
            let most = self.shared.config.connections;
            let berth = present.berth(here);
            let least = berth.ways.iter().min_by_key(|way| way.requests()).cloned();
            let is_free = least.as_ref().is_some_and(|way| way.requests() == 0);
            if !is_free && berth.dialling.is_none() && berth.ways.len() < most {
                berth.dialling = Some(dial::dial(self.shared.clone(), here));
            }
            match (least, &berth.dialling) {
                (Some(way), _) => return Ok(way),
                (None, Some(dialling)) => dialling.clone(),
                (None, None) => return Err(StoreErrorKind::Unreachable.into()),
            }
        };
        match dialling.wait_for(Option::is_some).await {
            Ok(done) => done.clone().unwrap_or_else(|| Err(StoreErrorKind::Closed.into())),
            // The task has ended with its runtime, and so do we.
            Err(_) => Err(StoreErrorKind::Closed.into()),
        }
    }
}

impl Shared {
    fn present(&self) -> MutexGuard<'_, Present> {
        // Each change is one assignment, so that a panic leaves it whole.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_up(&self, way: &Arc<Way>) {
        for berth in &mut self.present().berths {
            berth.ways.retain(|known| !Arc::ptr_eq(known, way));
        }
    }
}

impl Present {
    /// Forgets connections that have ended, and runtimes that have none any more.
    fn sweep(&mut self, here: Id) {
        for berth in &mut self.berths {
            berth.ways.retain(|way| way.is_usable());
            // A task that ended without a word has ended with its runtime.
            berth.dialling = berth.dialling.take().filter(|dialling| dialling.has_changed().is_ok());
        }
        self.berths.retain(|berth| berth.on == here || !berth.ways.is_empty() || berth.dialling.is_some());
    }

    fn berth(&mut self, on: Id) -> &mut Berth {
        let at = self.berths.iter().position(|berth| berth.on == on).unwrap_or_else(|| {
            self.berths.push(Berth { on, ways: Vec::new(), dialling: None });
            self.berths.len() - 1
        });
        &mut self.berths[at]
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.shared.address)
    }
}
