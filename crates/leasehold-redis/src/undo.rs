//! Taking back a grant that does not count.

use crate::{
    error::Fault,
    keys::Keys,
    record,
    reply::{Reply, key_of},
    script::{Call, Script, script},
};
use leasehold_core::Claim;
use redis::Value;

static UNDO: Script = script!("undo");

/// The request. What the term before left behind waits for the next one again.
pub(crate) fn call(keys: &Keys, claim: &Claim) -> Call {
    let [key, fence, events] = keys.of(&claim.name);
    Call::new(&UNDO, &[key, fence]).arg(record::claim_words(claim)).arg(events).repeatable()
}

/// The answer: from here on the claim has ended, whether it was undone or something came between.
pub(crate) fn answer(keys: &Keys, claim: &Claim, value: Value) -> Result<(), Fault> {
    if value == Value::Int(1) {
        return Ok(());
    }
    let reply = Reply::new(value, key_of(keys, &claim.name));
    match reply.word()? {
        "gone" => Ok(()),
        other => Err(reply.reader().damage(format!("unexpected answer {other:?}"))),
    }
}
