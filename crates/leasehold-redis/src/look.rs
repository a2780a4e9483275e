//! Looking at leases, which changes nothing.

use crate::{
    error::{Failure, Fault, part_of_a_cluster},
    keys::Keys,
    link::Link,
    record::{Reader, witness_of},
    reply::{Reply, key_of},
    script::{Call, Script, script},
};
use leasehold_core::{LeaseName, LeaseRecord};
use redis::{FromRedisValue, Value};
use std::collections::BTreeSet;

static INSPECT: Script = script!("inspect");

/// How many keys a step of a SCAN looks at.
const STEP: usize = 1_000;

fn call(keys: &Keys, name: &LeaseName) -> Call {
    Call::new(&INSPECT, &[keys.claim(name), keys.fence(name)]).repeatable()
}

/// The state of one lease, as `record` reads it.
pub(crate) fn state(keys: &Keys, name: &LeaseName, value: Value) -> Result<Vec<u8>, Fault> {
    match value {
        Value::BulkString(state) => Ok(state),
        other => {
            let reply = Reply::new(other, key_of(keys, name));
            let word = reply.word()?.to_owned();
            Err(reply.reader().damage(format!("unexpected answer {word:?}")))
        }
    }
}

fn record(keys: &Keys, name: &LeaseName, value: Value) -> Result<LeaseRecord, Fault> {
    Ok(Seen::new(keys, name, &state(keys, name, value)?)?.record)
}

/// A lease as it was seen, with what only this store knows of it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) record: LeaseRecord,
    /// The channel on which the holder's process is heard.
    pub(crate) witness: Option<String>,
}

impl Seen {
    /// From a state that a script answered or published.
    pub(crate) fn new(keys: &Keys, name: &LeaseName, state: &[u8]) -> Result<Self, Fault> {
        let key = key_of(keys, name);
        let record = Reader { key: &key }.record(name, state)?;
        Ok(Self { record, witness: witness_of(state).map(str::to_owned) })
    }
}

/// Many leases, as [`Seen`], in one round trip to each server.
pub(crate) async fn seen(link: &Link, names: &[LeaseName]) -> Vec<Result<Seen, Failure>> {
    let calls: Vec<Call> = names.iter().map(|name| call(link.keys(), name)).collect();
    let values = link.calls(&calls).await;
    let one = |(name, value): (&LeaseName, Result<Value, Failure>)| {
        Ok(Seen::new(link.keys(), name, &state(link.keys(), name, value?)?)?)
    };
    names.iter().zip(values).map(one).collect()
}

/// Looks whether the holders of these leases have crashed, and tells all who watch if so: one process that noticed it is
/// enough. Whoever may not publish tells nobody.
pub(crate) async fn tell_crashes(link: &Link, names: &[LeaseName]) {
    let telling = |name: &LeaseName| call(link.keys(), name).arg(link.keys().events(name));
    let calls: Vec<Call> = names.iter().map(telling).collect();
    for failure in link.calls(&calls).await.into_iter().filter_map(Result::err) {
        tracing::debug!(error = %failure.fault, "a crash was not told to others");
    }
}

/// One lease.
pub(crate) async fn one(link: &Link, name: &LeaseName) -> Result<LeaseRecord, Failure> {
    let value = link.call(&call(link.keys(), name)).await?;
    Ok(record(link.keys(), name, value)?)
}

/// Many leases, in one round trip to each server.
pub(crate) async fn many(link: &Link, names: &[LeaseName]) -> Vec<Result<LeaseRecord, Failure>> {
    seen(link, names).await.into_iter().map(|seen| Ok(seen?.record)).collect()
}

/// The names of all leases that begin with `prefix`, in order.
pub(crate) async fn names(link: &Link, prefix: &str) -> Result<Vec<LeaseName>, Failure> {
    if !link.is_sharded() {
        // Each other request says that it went to a wrong server; a SCAN finds what there is. Whoever may not ask is none
        // the worse.
        let info = link.ask(redis::cmd("INFO").arg("cluster")).await;
        let info = info.ok().and_then(|info| String::from_redis_value(info).ok()).unwrap_or_default();
        if info.contains("cluster_enabled:1") {
            return Err(part_of_a_cluster().into());
        }
    }
    let mut names = BTreeSet::new();
    // A claim may have outlived its counter, which somebody removed: it is a lease all the same.
    for (pattern, suffix) in [(link.keys().every_fence(), ":fence"), (link.keys().every_claim(), ":claim")] {
        for key in link.scan(&pattern, STEP).await? {
            let name = link.keys().lease_of(&key, suffix);
            names.extend(name.filter(|name| name.as_str().starts_with(prefix)));
        }
    }
    Ok(names.into_iter().collect())
}
