//! Asks the server that is in charge now, and finds it again when it has changed.
//!
//! * [`route`]: finds the servers in charge. [`way`]: a connection, to one of them or to a Cluster. [`cluster`]: what is
//!   followed there.
//! * [`present`]: the connections that there are. An error that says that one is no good (`error::verdict`), or a silence
//!   on it, removes it, and the next call makes another one.
//! * [`patient`]: those that are kept waiting for replicas.
//!
//! A request that was perhaps carried out is repeated at most once, and only if twice is the same as once. Whatever is then
//! refused, the first one may have been done: that is what callers are told (I7).

mod cluster;
mod patient;
mod present;
mod route;
mod tries;
mod way;

use crate::{
    config::{Config, Node, Target, Wait},
    error::{Failure, Fault, Verdict, verdict},
    keys::{self, Keys},
    script::Call,
};
use futures_util::future::join_all;
use leasehold_core::StoreErrorKind;
use patient::Patient;
use present::{Flight, Present, Tag};
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use route::Route;
use std::{
    fmt,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tries::Tries;
use way::Way;

/// How many scripts go to a server in one go.
const PIPELINE: usize = 256;

/// Asks over the present connection, and once more over a new one if the old one had ended: servers close idle connections,
/// and nobody notices before the next request. The answer, whether it is to a repetition of what was perhaps done, and over
/// which connection it came.
macro_rules! persist {
    ($link:ident, $repeatable:expr, $slot:expr, |$way:ident| $ask:expr) => {{
        let mut tries = Tries::new($repeatable);
        loop {
            let (mut $way, tag) = match present::way(&$link.shared).await {
                Ok(present) => present,
                Err(fault) => break Err(tries.told(fault.into())),
            };
            let flight = Flight::begin(&$link.shared, tag, $slot);
            let answer = $ask.await;
            flight.land();
            if let Some(answer) = $link.judge(answer, tag, &mut tries) {
                break answer.map(|answer| (answer, tries.lost, tag));
            }
        }
    }};
}

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
    present: Present,
    patient: Patient,
    /// Counts the ears that were opened.
    ears: AtomicUsize,
}

/// What one server in charge said to each of several commands.
pub(crate) struct Answers {
    /// Which server, where there are several.
    pub(crate) server: Option<String>,
    pub(crate) said: Vec<Result<Value, Failure>>,
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
            present: Present::new(seed),
            patient: Patient::default(),
            ears: AtomicUsize::default(),
        };
        let link = Self { shared: Arc::new(shared) };
        present::way(&link.shared).await?;
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
        Ok(self.call_told(call).await?.0)
    }

    /// The same, and whether the script has perhaps run before: a refusal that it answers then says nothing of that.
    pub(crate) async fn call_told(&self, call: &Call) -> Result<(Value, bool), Failure> {
        let slot = self.is_sharded().then(|| keys::slot(call.first_key()));
        let (value, lost, _) = persist!(self, call.is_repeatable(), slot, |way| run(&mut way, call))?;
        Ok((value, lost))
    }

    /// Runs one script that changes something and then waits until `wait.replicas` replicas have it: the answer, whether the
    /// script has perhaps run before, and how many have it. On a connection of its own, for the server lets everything
    /// behind it wait as well.
    pub(crate) async fn call_then_wait(
        &self,
        call: &Call,
        wait: Wait,
    ) -> Result<(Value, bool, Result<u64, Fault>), Failure> {
        let mut tries = Tries::new(call.is_repeatable());
        loop {
            let (mut way, idle) =
                patient::take(&self.shared).await.map_err(|fault| tries.told(fault.into()))?;
            match way.run_then_wait(call, wait).await {
                Ok((value, replicas)) => {
                    self.shared.patient.put(way);
                    return Ok((value, tries.lost, replicas.map_err(Fault::from)));
                }
                Err(error) => {
                    let good = verdict(&error) == Verdict::Keep || way.is_to_a_cluster();
                    if good {
                        self.shared.patient.put(way);
                    }
                    // A slot that moved, or a server that closed what was idle.
                    let moved = good && cluster::is_certainly_not_done(&error);
                    if !(moved && tries.once_more().await || idle && tries.again(&error)) {
                        return Err(tries.told(error.into()));
                    }
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
        let repeatable = calls.iter().all(Call::is_repeatable);
        let sent: Result<_, Failure> = persist!(self, repeatable, None, |way| way.pipeline(calls));
        let (values, lost, tag) = match sent {
            Ok(sent) => sent,
            Err(failure) => return vec![Err(failure); calls.len()],
        };
        let answers = calls.iter().zip(values).map(async |(call, value)| match value {
            Ok(value) => Ok(value),
            // The server lost its scripts, or never had them: one by one it gets them again.
            Err(error) if is_no_script(&error) => self.call(call).await,
            // So does a server of a Cluster to which the connection ended.
            Err(error) if call.is_repeatable() && error.is_connection_dropped() => {
                self.call(call).await.map_err(|failure| failure.or_done(true))
            }
            Err(error) => {
                if verdict(&error) == Verdict::GiveUp {
                    present::give_up(&self.shared, tag, &error);
                }
                Err(Failure::from(error).or_done(lost))
            }
        });
        join_all(answers).await
    }

    /// Runs a command that may be run twice, on the server in charge, or any of a Cluster.
    pub(crate) async fn ask(&self, cmd: &Cmd) -> Result<Value, Failure> {
        Ok(persist!(self, true, None, |way| way.ask(cmd))?.0)
    }

    /// All keys of a pattern, on every server in charge, in no order, perhaps some twice.
    pub(crate) async fn scan(&self, pattern: &str, step: usize) -> Result<Vec<Vec<u8>>, Failure> {
        if self.is_sharded() {
            let mut keys = Vec::new();
            for client in self.primaries().await? {
                let mut way = Way::to(&client, &self.shared.config).await?;
                keys.extend(way::scan(&mut way, pattern, step).await?);
            }
            return Ok(keys);
        }
        Ok(persist!(self, true, None, |way| way::scan(&mut way, pattern, step))?.0)
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
    /// it does. In a Cluster any primary does, and another one each time.
    pub(crate) async fn ear(&self) -> Result<redis::aio::PubSub, Fault> {
        let config = &self.shared.config;
        if !self.is_sharded() {
            return listen(&self.shared.route.primary(config).await?, config.connect_timeout).await;
        }
        let mut primaries = self.primaries().await.map_err(|failure| failure.fault)?;
        let first = self.shared.ears.fetch_add(1, Ordering::Relaxed) % primaries.len().max(1);
        primaries.rotate_left(first);
        let mut ear = Err(StoreErrorKind::Unreachable.into());
        for primary in primaries {
            ear = listen(&primary, config.connect_timeout).await;
            if ear.is_ok() {
                break;
            }
        }
        ear
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

    /// The end of a try, or `None` if there is to be another one.
    fn judge<T>(
        &self,
        answer: Result<T, RedisError>,
        tag: Tag,
        tries: &mut Tries,
    ) -> Option<Result<T, Failure>> {
        let error = match answer {
            Ok(answer) => return Some(Ok(answer)),
            Err(error) => error,
        };
        if verdict(&error) == Verdict::GiveUp {
            present::give_up(&self.shared, tag, &error);
        }
        if tries.again(&error) { None } else { Some(Err(tries.told(error.into()))) }
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
