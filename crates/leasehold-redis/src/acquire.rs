//! Asking for a lease.

use crate::{
    error::{Failure, Fault},
    keys::Keys,
    record::{self, Reader, encode},
    reply::{Reply, key_of, said},
    script::{Call, Script, script},
};
use leasehold_core::{Acquire, Bid, Granted, Held, Note, StoreErrorKind};
use redis::Value;
use std::time::Duration;

static ACQUIRE: Script = script!("acquire");

/// The request; `witness` is the channel that this process is heard on.
pub(crate) fn call(keys: &Keys, bid: &Bid, witness: Option<&str>) -> Call {
    let [claim, fence, events] = keys.of(&bid.name);
    let call = Call::new(&ACQUIRE, &[claim, fence])
        .arg(bid.attempt.to_hex())
        .arg(encode(bid.replica.as_str()))
        .arg(millis(bid.ttl))
        .arg(events)
        // The attempt id makes it the same acquisition.
        .repeatable();
    let trace = record::trace_word(&bid.trace);
    if bid.floor.is_none() && witness.is_none() && trace.is_empty() {
        return call;
    }
    let floor = bid.floor.map_or_else(String::new, |floor| floor.to_string());
    call.arg(floor).arg(witness.unwrap_or_default()).arg(trace)
}

/// The answer. A failure says whether the claim may stand all the same.
pub(crate) fn answer(keys: &Keys, bid: &Bid, value: Value) -> Result<Acquire, Failure> {
    let key = || key_of(keys, &bid.name);
    // From a grant on the lease is ours: what cannot be read of it is no reason to say that it is not.
    let ours = |fault| Failure { fault, perhaps_done: true };
    if let Value::BulkString(grant) = &value {
        return granted(Reader { key: &key() }, bid, grant).map(Acquire::Granted).map_err(ours);
    }
    let reply = Reply::new(value, key());
    let reader = reply.reader();
    Ok(match reply.word()? {
        "granted" => Acquire::Granted(granted_again(&reply, bid).map_err(ours)?),
        "held" => Acquire::Held(Held {
            by: reader.replica(reply.text(1)?)?,
            fence: reader.fence(reply.text(2)?)?,
            remaining: Duration::from_millis(reply.number(3)?.max(0).unsigned_abs()),
            reserved: reply.number(4)? == 1,
        }),
        "spent" => return Err(Fault::from(StoreErrorKind::SpentAttempt).into()),
        "unwitnessed" => return Err(Fault::from(StoreErrorKind::Unwitnessed).into()),
        // A user with half of the rights: the claim stands, and perhaps without its fence.
        "unsure" => return Err(ours(said(reply.text(1)?))),
        "exhausted" => {
            let highest = reader.fence(reply.text(1)?)?;
            return Err(Fault::from(StoreErrorKind::FenceExhausted(highest)).into());
        }
        other => return Err(reader.damage(format!("unexpected answer {other:?}")).into()),
    })
}

/// The usual grant, in one text: it is read twice as fast as a list.
fn granted(reader: Reader<'_>, bid: &Bid, grant: &[u8]) -> Result<Granted, Fault> {
    let (fence, past) = reader.utf8(grant)?.split_once(' ').unwrap_or_default();
    grant_of(reader, bid, fence, past)
}

/// The grant of a claim that was ours already, or one with a note.
fn granted_again(reply: &Reply, bid: &Bid) -> Result<Granted, Fault> {
    let reader = reply.reader();
    let mut granted = grant_of(reader, bid, reply.text(1)?, reply.text(2)?)?;
    if let Some(bytes) = reply.bytes(3) {
        let from = reader.fence(reply.text(4)?)?;
        let note = Note::new(from, bytes).map_err(|error| reader.damage(error.to_string()))?;
        granted.inherited = Some(note);
    }
    Ok(granted)
}

fn grant_of(reader: Reader<'_>, bid: &Bid, fence: &str, past: &str) -> Result<Granted, Fault> {
    let claim = bid.granted(reader.fence(fence)?);
    Ok(Granted { claim, remaining: bid.ttl, predecessor: reader.predecessor(past)?, inherited: None })
}

/// Whole milliseconds, rounded up: a claim lives at least as long as its holder believes.
pub(crate) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
