//! Asking for a lease.

use crate::{
    error::{Failure, Fault},
    keys::Keys,
    record::{self, encode},
    reply::{Reply, key_of},
    script::{Call, Script, script},
};
use leasehold_core::{
    Acquire, Bid, Granted, Held, Note, StoreErrorKind,
    timing::{MAX_TTL, MIN_TTL},
};
use redis::Value;
use std::time::Duration;

static ACQUIRE: Script = script!("acquire");

/// The request; `witness` is the channel that this process is heard on.
pub(crate) fn call(keys: &Keys, bid: &Bid, witness: Option<&str>) -> Call {
    Call::new(&ACQUIRE, &[keys.claim(&bid.name), keys.fence(&bid.name)])
        .arg(bid.attempt.to_hex())
        .arg(encode(bid.replica.as_str()))
        .arg(millis(bid.ttl))
        .arg(bid.floor.map_or_else(String::new, |floor| floor.to_string()))
        .arg(witness.unwrap_or_default())
        .arg(record::trace_word(&bid.trace))
        .arg(keys.events(&bid.name))
        // The attempt id makes it the same acquisition.
        .repeatable()
}

/// The answer. A fault means that nothing was changed.
pub(crate) fn answer(keys: &Keys, bid: &Bid, value: Value) -> Result<Acquire, Failure> {
    let reply = Reply::new(value, key_of(keys, &bid.name));
    let reader = reply.reader();
    Ok(match reply.word()? {
        "granted" => {
            // From here on the lease is ours: what cannot be read of it is no reason to say that it is not.
            let granted = granted(&reply, bid);
            Acquire::Granted(granted.map_err(|fault| Failure { fault, perhaps_done: true })?)
        }
        "held" => Acquire::Held(Held {
            by: reader.replica(reply.text(1)?)?,
            fence: reader.fence(reply.text(2)?)?,
            remaining: Duration::from_millis(reply.number(3)?.max(0).unsigned_abs()),
            reserved: reply.number(4)? == 1,
        }),
        "spent" => return Err(Fault::from(StoreErrorKind::SpentAttempt).into()),
        "exhausted" => {
            let highest = reader.fence(reply.text(1)?)?;
            return Err(Fault::from(StoreErrorKind::FenceExhausted(highest)).into());
        }
        other => return Err(reader.damage(format!("unexpected answer {other:?}")).into()),
    })
}

fn granted(reply: &Reply, bid: &Bid) -> Result<Granted, Fault> {
    let reader = reply.reader();
    let inherited = match reply.bytes(3) {
        Some(bytes) => {
            let from = reader.fence(reply.text(4)?)?;
            Some(Note::new(from, bytes).map_err(|error| reader.damage(error.to_string()))?)
        }
        None => None,
    };
    Ok(Granted {
        claim: bid.granted(reader.fence(reply.text(1)?)?),
        remaining: bid.ttl,
        predecessor: reader.predecessor(reply.text(2)?)?,
        inherited,
    })
}

/// Whole milliseconds, rounded up: a claim lives at least as long as its holder believes.
pub(crate) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// A ttl of zero would end the claim at once, an endless one would block everybody for good: neither is guessed at.
pub(crate) fn check_ttl(ttl: Duration) -> Result<(), Fault> {
    if (MIN_TTL..=MAX_TTL).contains(&ttl) {
        return Ok(());
    }
    Err(Fault::config(format!("a ttl of {ttl:?} is outside this store's {MIN_TTL:?} to {MAX_TTL:?}")))
}
