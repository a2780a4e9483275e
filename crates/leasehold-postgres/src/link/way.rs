//! One connection, and what is known of it.

use crate::error::Failure;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};
use tokio_postgres::{
    Client, Row,
    types::{ToSql, Type},
};

/// A value, and what the statement takes it for.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection. Requests are answered in their order.
pub(crate) struct Way {
    client: Client,
    requests: AtomicUsize,
    is_silent: AtomicBool,
    is_probed: AtomicBool,
    patience: Duration,
}

impl Way {
    pub(super) fn new(client: Client, patience: Duration) -> Self {
        Self {
            client,
            requests: AtomicUsize::new(0),
            is_silent: AtomicBool::new(false),
            is_probed: AtomicBool::new(false),
            patience,
        }
    }

    /// How many requests it has not answered.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.is_silent.load(Ordering::Relaxed)
    }

    pub(super) async fn ask(
        self: &Arc<Self>,
        sql: &str,
        params: &[Param<'_>],
        patience: Duration,
    ) -> Result<Vec<Row>, Failure> {
        let mut flight = Flight::begin(self.clone());
        let answer = timeout(patience, self.client.query_typed(sql, params)).await;
        flight.is_answered = true;
        match answer {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.is_silent.store(true, Ordering::Relaxed);
                Err(Failure::silence(patience))
            }
        }
    }

    /// Finds out whether the other side still answers.
    async fn probe(self: Arc<Self>) {
        let answer = timeout(self.patience, self.client.simple_query("")).await;
        if !matches!(answer, Ok(Ok(_))) {
            self.is_silent.store(true, Ordering::Relaxed);
        }
        self.is_probed.store(false, Ordering::Release);
    }
}

/// A request on its way. If it is dropped before its answer, nobody would notice that none comes.
struct Flight {
    way: Arc<Way>,
    is_answered: bool,
}

impl Flight {
    fn begin(way: Arc<Way>) -> Self {
        way.requests.fetch_add(1, Ordering::Relaxed);
        Self { way, is_answered: false }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.way.requests.fetch_sub(1, Ordering::Relaxed);
        if !self.is_answered
            && let Ok(here) = Handle::try_current()
            && !self.way.is_probed.swap(true, Ordering::AcqRel)
        {
            here.spawn(self.way.clone().probe());
        }
    }
}
