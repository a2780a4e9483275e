//! Ending a claim: by its holder, or by force.

use crate::{
    acquire::millis,
    error::{Failure, Fault},
    keys::Keys,
    record::{self, encode},
    reply::{Reply, key_of},
    script::{Call, Script, script},
};
use leasehold_core::{Claim, Force, LeaseName, Parting, Release, ReplicaId, bounds, timing::MAX_TTL};
use redis::Value;

static RELEASE: Script = script!("release");

/// The request of a holder.
pub(crate) fn call(keys: &Keys, claim: &Claim, parting: &Parting) -> Call {
    let base = begin(keys, &claim.name, &record::claim_words(claim), &record::parting_words(parting));
    let base = match &parting.heir {
        // A window without end would lock everybody else out.
        Some((heir, window)) => base.arg(encode(heir.as_str())).arg(millis((*window).min(MAX_TTL)).max(1)),
        None if parting.note.is_some() => base.arg("").arg(0),
        None => base,
    };
    match &parting.note {
        Some(note) => base.arg(note.bytes()),
        None => base,
    }
}

/// The request of somebody else.
pub(crate) fn force_call(keys: &Keys, name: &LeaseName, by: &ReplicaId, reason: &str) -> Result<Call, Fault> {
    bounds::reason(reason)?;
    Ok(begin(keys, name, "", &record::forced_words(by, reason)))
}

fn begin(keys: &Keys, name: &LeaseName, expected: &str, fate: &str) -> Call {
    let [claim, fence, events] = keys.of(name);
    // The fate names the request: its repetition is known as such.
    Call::new(&RELEASE, &[claim, fence]).arg(expected).arg(fate).arg(events).repeatable()
}

/// The answer to a holder.
pub(crate) fn answer(keys: &Keys, claim: &Claim, value: Value) -> Result<Release, Failure> {
    if value == Value::Int(1) {
        return Ok(Release::Released);
    }
    let reply = Reply::new(value, key_of(keys, &claim.name));
    match reply.word()? {
        "gone" => Ok(Release::NotHolder(reply.not_holder()?)),
        other => Err(reply.reader().damage(format!("unexpected answer {other:?}")).into()),
    }
}

/// The answer to somebody else.
pub(crate) fn force_answer(keys: &Keys, name: &LeaseName, value: Value) -> Result<Force, Failure> {
    let reply = Reply::new(value, key_of(keys, name));
    let reader = reply.reader();
    match reply.word()? {
        "ended" => Ok(Force::Forced {
            fence: reader.fence(reply.text(1)?)?,
            replica: reader.replica(reply.text(2)?)?,
        }),
        "gone" => Ok(Force::Vacant),
        other => Err(reader.damage(format!("unexpected answer {other:?}")).into()),
    }
}
