//! Renewing claims, many in one step.

use crate::{
    acquire::millis,
    error::{Failure, Fault},
    keys::{self, Keys},
    link::Link,
    record::claim_words,
    reply::{Reply, key_of},
    script::{Call, Script, script},
};
use leasehold_core::{Renew, Renewal, StoreErrorKind, bounds};
use redis::Value;

static RENEW: Script = script!("renew");

/// How many claims one script renews: a server does nothing else meanwhile, and this many take it half a millisecond.
const BATCH: usize = 256;

/// Renews claims, in as few steps as the servers allow: one script for each batch, or in a Cluster for each slot.
pub(crate) async fn renew(link: &Link, renewals: &[Renewal]) -> Vec<Result<Renew, Failure>> {
    let mut answers: Vec<Option<Result<Renew, Failure>>> = Vec::with_capacity(renewals.len());
    answers
        .extend(renewals.iter().map(|renewal| bounds::ttl(renewal.ttl).err().map(|fault| Err(fault.into()))));
    let batches = batches(link, renewals, &answers);
    let calls: Vec<Call> = batches.iter().map(|batch| call(link.keys(), renewals, batch)).collect();
    for (batch, answer) in batches.iter().zip(link.calls(&calls).await) {
        let each = match answer {
            Ok(Value::Array(each)) if each.len() == batch.len() => each,
            Ok(other) => vec![other; batch.len()],
            Err(failure) => {
                for &at in batch {
                    answers[at] = Some(Err(failure.clone()));
                }
                continue;
            }
        };
        for (&at, value) in batch.iter().zip(each) {
            answers[at] = Some(answer_of(link.keys(), &renewals[at], value));
        }
    }
    // Each place was filled: by its refusal, or by its batch.
    answers.into_iter().flatten().collect()
}

/// The places of the claims that go together.
fn batches(link: &Link, renewals: &[Renewal], refused: &[Option<Result<Renew, Failure>>]) -> Vec<Vec<usize>> {
    let mut wanted: Vec<usize> = (0..renewals.len()).filter(|&at| refused[at].is_none()).collect();
    if !link.is_sharded() {
        return wanted.chunks(BATCH).map(<[usize]>::to_vec).collect();
    }
    let slot = |at: usize| keys::slot(link.keys().claim(&renewals[at].claim.name).as_bytes());
    wanted.sort_by_cached_key(|&at| slot(at));
    let together = |a: &usize, b: &usize| slot(*a) == slot(*b);
    wanted.chunk_by(together).flat_map(|same| same.chunks(BATCH)).map(<[usize]>::to_vec).collect()
}

fn call(keys: &Keys, renewals: &[Renewal], batch: &[usize]) -> Call {
    let claims = batch.iter().map(|&at| &renewals[at]);
    let names: Vec<String> = claims
        .clone()
        .flat_map(|renewal| [keys.claim(&renewal.claim.name), keys.fence(&renewal.claim.name)])
        .collect();
    claims.fold(Call::new(&RENEW, &names).repeatable(), |call, renewal| {
        call.arg(claim_words(&renewal.claim)).arg(millis(renewal.ttl))
    })
}

fn answer_of(keys: &Keys, renewal: &Renewal, value: Value) -> Result<Renew, Failure> {
    if value == Value::Int(1) {
        return Ok(Renew::Renewed { remaining: renewal.ttl });
    }
    let reply = Reply::new(value, key_of(keys, &renewal.claim.name));
    match reply.word()? {
        "gone" => Ok(Renew::NotHolder(reply.not_holder()?)),
        "unwitnessed" => Err(Fault::from(StoreErrorKind::Unwitnessed).into()),
        other => Err(reply.reader().damage(format!("unexpected answer {other:?}")).into()),
    }
}
