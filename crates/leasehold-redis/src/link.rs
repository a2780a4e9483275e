//! Asks the server that is in charge now, and finds it again when it has changed.
//!
//! ```text
//! call ─► way() ─► the connection, if there is one ──────────────► answer
//!              └─► else one caller makes it, the others wait ─┘
//!   an error that says that the connection is no good (error::verdict) removes it: the next call makes another one
//! ```
//!
//! Between two attempts to connect lies a back-off with jitter, so that the replicas of a service do not come back all at
//! once. Nobody waits longer than it and one attempt take.

mod route;
mod way;

use crate::{
    config::{Config, Node, Target, Wait},
    error::{Failure, Fault, Verdict, verdict},
    keys::Keys,
    script::Call,
};
use futures_util::future::join_all;
use leasehold_core::backoff::Backoff;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use route::Route;
use std::{
    fmt,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::runtime::{Handle, Id};
use way::Way;

/// The first and the longest pause between two attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// How many scripts go to a server in one go.
const PIPELINE: usize = 256;

/// The way to the servers of one store. Cheap to clone. Any number of tasks may call at once, and drop their calls.
#[derive(Clone)]
pub(crate) struct Link {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    keys: Keys,
    address: Arc<str>,
    route: Route,
    // A std mutex: held to look and to set, never over an await.
    present: Mutex<Present>,
    /// Held by whoever connects.
    connecting: tokio::sync::Mutex<Backoff>,
    /// For requests that keep a connection waiting.
    patient: tokio::sync::Mutex<Option<Way>>,
}

/// What one server in charge said to each of several commands.
pub(crate) struct Answers {
    /// Which server, where there are several.
    pub(crate) server: Option<String>,
    pub(crate) said: Vec<Result<Value, Failure>>,
}

#[derive(Default)]
struct Present {
    /// A connection for each runtime that asks. The task that serves a connection runs where it was made: on a runtime
    /// that is blocked by its work, it would hold up renewals that were put on another one for that very reason.
    ways: Vec<Made>,
    /// Counts the connections, so that an old one's error does not remove a new one.
    number: u64,
    /// Counts the attempts that failed, and keeps the last failure for those who waited for it.
    failures: u64,
    failure: Option<Fault>,
}

/// A connection that was made.
struct Made {
    on: Id,
    number: u64,
    way: Way,
}

impl Present {
    fn way(&self, on: Id) -> Option<(Way, u64)> {
        let made = self.ways.iter().find(|made| made.on == on)?;
        Some((made.way.clone(), made.number))
    }
}

impl Link {
    /// Connects.
    pub(crate) async fn open(config: &Config) -> Result<Self, Fault> {
        let address = config.address();
        let route = Route::new(config)?;
        let seed = u64::from(std::process::id()) ^ Arc::as_ptr(&address).cast::<u8>() as u64;
        let shared = Shared {
            config: config.clone(),
            keys: Keys::new(config.prefix.clone()),
            address,
            route,
            present: Mutex::default(),
            connecting: tokio::sync::Mutex::new(Backoff::new(PAUSES.0, PAUSES.1, seed)),
            patient: tokio::sync::Mutex::default(),
        };
        let link = Self { shared: Arc::new(shared) };
        link.way().await?;
        Ok(link)
    }

    /// The store's address without secrets.
    pub(crate) fn address(&self) -> &Arc<str> {
        &self.shared.address
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.shared.keys
    }

    pub(crate) fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Whether keys are spread over several servers.
    pub(crate) fn is_sharded(&self) -> bool {
        matches!(self.shared.config.target, Target::Cluster(_))
    }

    /// Runs one script. What the server refuses is a failure with nothing done.
    pub(crate) async fn call(&self, call: &Call) -> Result<Value, Failure> {
        let mut again = call.is_repeatable();
        loop {
            let (mut way, number) = self.way().await?;
            match run(&mut way, call).await {
                Ok(value) => return Ok(value),
                Err(error) => self.judge(error, number, &mut again)?,
            }
        }
    }

    /// Runs one script that changes something and then waits until `wait.replicas` replicas have it: the answer, and how
    /// many have it. On a connection of its own, for the server lets everything behind it wait as well.
    pub(crate) async fn call_then_wait(&self, call: &Call, wait: Wait) -> Result<(Value, u64), Failure> {
        let mut slot = self.shared.patient.lock().await;
        let mut again = call.is_repeatable();
        loop {
            let mut way = match slot.take() {
                Some(way) => way,
                None => self.shared.route.connect(&self.shared.config).await?,
            };
            match way.run_then_wait(call, wait).await {
                Ok(answer) => {
                    *slot = Some(way);
                    return Ok(answer);
                }
                // The server closed it while it was idle.
                Err(error) if std::mem::take(&mut again) && error.is_connection_dropped() => {}
                Err(error) => {
                    if verdict(&error) == Verdict::Keep {
                        *slot = Some(way);
                    }
                    return Err(error.into());
                }
            }
        }
    }

    /// Runs many scripts, in one round trip to each server that is concerned; the answers are in the order of the
    /// calls. Each is atomic for itself.
    pub(crate) async fn calls(&self, calls: &[Call]) -> Vec<Result<Value, Failure>> {
        let mut answers = Vec::with_capacity(calls.len());
        for calls in calls.chunks(PIPELINE) {
            match calls {
                [call] => answers.push(self.call(call).await),
                calls => answers.extend(self.pipeline(calls).await),
            }
        }
        answers
    }

    async fn pipeline(&self, calls: &[Call]) -> Vec<Result<Value, Failure>> {
        let values = match self.sent(calls).await {
            Ok(values) => values,
            Err(failure) => return vec![Err(failure); calls.len()],
        };
        let mut answers = Vec::with_capacity(calls.len());
        for (call, value) in calls.iter().zip(values) {
            answers.push(match value.extract_error() {
                Ok(value) => Ok(value),
                // The server lost its scripts, or never had them: one by one it gets them again.
                Err(error) if is_no_script(&error) => self.call(call).await,
                Err(error) => {
                    if verdict(&error) == Verdict::GiveUp {
                        self.shared.give_up(None);
                    }
                    Err(error.into())
                }
            });
        }
        answers
    }

    async fn sent(&self, calls: &[Call]) -> Result<Vec<Value>, Failure> {
        let mut again = calls.iter().all(Call::is_repeatable);
        loop {
            let (mut way, number) = self.way().await?;
            match way.pipeline(calls).await {
                Ok(values) => return Ok(values),
                Err(error) => self.judge(error, number, &mut again)?,
            }
        }
    }

    /// Runs a command that may be run twice, on the server in charge, or any of a Cluster.
    pub(crate) async fn ask(&self, cmd: &Cmd) -> Result<Value, Failure> {
        let mut again = true;
        loop {
            let (mut way, number) = self.way().await?;
            match way.ask(cmd).await {
                Ok(value) => return Ok(value),
                Err(error) => self.judge(error, number, &mut again)?,
            }
        }
    }

    /// All keys of a pattern, on every server in charge, in no order, perhaps some twice.
    pub(crate) async fn scan(&self, pattern: &str, step: usize) -> Result<Vec<Vec<u8>>, Failure> {
        let mut keys = Vec::new();
        if self.is_sharded() {
            for client in self.primaries().await? {
                let mut way = Way::to(&client, &self.shared.config).await?;
                way::scan(&mut way, pattern, step, &mut keys).await?;
            }
            return Ok(keys);
        }
        let mut again = true;
        loop {
            let (mut way, number) = self.way().await?;
            match way::scan(&mut way, pattern, step, &mut keys).await {
                Ok(()) => return Ok(keys),
                Err(error) => self.judge(error, number, &mut again)?,
            }
        }
    }

    /// Asks every server in charge the same; what each says, or why it says nothing, stands for itself. The servers of a
    /// Cluster are named, and are asked over connections of their own.
    pub(crate) async fn each(&self, cmds: &[Cmd]) -> Result<Vec<Answers>, Failure> {
        if !self.is_sharded() {
            let mut said = Vec::with_capacity(cmds.len());
            for cmd in cmds {
                said.push(self.ask(cmd).await);
            }
            return Ok(vec![Answers { server: None, said }]);
        }
        let config = &self.shared.config;
        let asking = self.primaries().await?.into_iter().map(|client| async move {
            let server = Some(client.get_connection_info().addr().to_string());
            let mut said = Vec::with_capacity(cmds.len());
            match Way::to(&client, config).await {
                Ok(mut way) => {
                    for cmd in cmds {
                        said.push(way.ask(cmd).await.map_err(Failure::from));
                    }
                }
                Err(fault) => said.resize_with(cmds.len(), || Err(fault.clone().into())),
            }
            Answers { server, said }
        });
        Ok(join_all(asking).await)
    }

    /// A connection of its own for what is heard, to a server in charge; its stream ends when that server or the way to
    /// it does.
    pub(crate) async fn ear(&self) -> Result<redis::aio::PubSub, Fault> {
        let client = self.shared.route.any(&self.shared.config).await?;
        listen(&client, self.shared.config.connect_timeout).await
    }

    /// Such a connection to one primary of a Cluster.
    pub(crate) async fn ear_at(&self, node: &Node) -> Result<redis::aio::PubSub, Fault> {
        let client = route::to(node, &self.shared.config)?;
        listen(&client, self.shared.config.connect_timeout).await
    }

    /// Who has which slots of a Cluster, as one of its nodes sees it now. Slots may be missing.
    pub(crate) async fn shards(&self) -> Result<Vec<(RangeInclusive<u16>, Node)>, Failure> {
        let slots = self.ask(redis::cmd("CLUSTER").arg("SLOTS")).await?;
        Ok(route::shards(&slots)?)
    }

    async fn primaries(&self) -> Result<Vec<redis::Client>, Failure> {
        let slots = self.ask(redis::cmd("CLUSTER").arg("SLOTS")).await?;
        Ok(route::primaries(&slots, &self.shared.config)?)
    }

    /// Removes a connection that turned out to be no good. `Ok` if the request is to be made again: once, if it may be,
    /// and if the connection had ended. Servers close idle connections, and nobody notices before the next request.
    fn judge(&self, error: RedisError, number: u64, again: &mut bool) -> Result<(), Failure> {
        if verdict(&error) == Verdict::GiveUp {
            self.shared.give_up(Some(number));
            if std::mem::take(again) && error.is_connection_dropped() {
                return Ok(());
            }
        }
        Err(error.into())
    }

    /// The connection to use, made if there is none.
    async fn way(&self) -> Result<(Way, u64), Fault> {
        let here = Handle::current().id();
        let failures = {
            let present = self.shared.present();
            if let Some(way) = present.way(here) {
                return Ok(way);
            }
            present.failures
        };
        let mut backoff = self.shared.connecting.lock().await;
        {
            let present = self.shared.present();
            if let Some(way) = present.way(here) {
                return Ok(way);
            }
            // Somebody tried while we waited, and we would only find the same.
            if let Some(failure) = present.failure.as_ref().filter(|_| present.failures != failures) {
                return Err(failure.clone());
            }
            if present.failures == 0 {
                backoff.reset();
            }
        }
        if failures > 0 {
            tokio::time::sleep(backoff.next_delay()).await;
        }
        let made = self.shared.route.connect(&self.shared.config).await;
        let mut present = self.shared.present();
        match made {
            Ok(way) => {
                (present.failures, present.failure) = (0, None);
                present.number += 1;
                let number = present.number;
                present.ways.push(Made { on: here, number, way: way.clone() });
                Ok((way, number))
            }
            Err(fault) => {
                present.failures += 1;
                present.failure = Some(fault.clone());
                Err(fault)
            }
        }
    }
}

impl Shared {
    fn present(&self) -> MutexGuard<'_, Present> {
        // Each change is one assignment, so that a panic leaves it whole.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the connection of this number, or all.
    fn give_up(&self, number: Option<u64>) {
        let is_meant = |made: &Made| number.is_none_or(|number| number == made.number);
        self.present().ways.retain(|made| !is_meant(made));
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.shared.address)
    }
}

async fn run(way: &mut Way, call: &Call) -> Result<Value, RedisError> {
    match way.ask(call.short()).await {
        Err(error) if is_no_script(&error) => way.ask(&call.full()).await,
        answer => answer,
    }
}

fn is_no_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

async fn listen(client: &redis::Client, within: Duration) -> Result<redis::aio::PubSub, Fault> {
    match tokio::time::timeout(within, client.get_async_pubsub()).await {
        Ok(ear) => Ok(ear?),
        Err(_) => Err(Fault::Silence(within)),
    }
}
