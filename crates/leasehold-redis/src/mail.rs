//! Letters between replicas.

use crate::{
    error::{Failure, Fault},
    link::Link,
    record::{Reader, encode, optional, trace_word},
    reply::Reply,
    script::{Call, Script, script},
};
use leasehold_core::{
    Envelope, LeaseName, ReplicaId, TraceContext, bounds,
    mail::{MAX_LETTER_AGE, MAX_LETTERS},
};

static POST: Script = script!("post");
static DRAIN: Script = script!("drain");

/// How many letters are taken in one step: their bodies are at most 64 KiB each.
const PORTION: usize = 16;

pub(crate) async fn post(link: &Link, to: &ReplicaId, envelope: &Envelope) -> Result<(), Failure> {
    bounds::letter(envelope)?;
    let key = link.keys().mail(to);
    let call = Call::new(&POST, &[&key])
        .arg(letter(envelope))
        .arg(MAX_LETTERS)
        .arg(u64::try_from(MAX_LETTER_AGE.as_millis()).unwrap_or(u64::MAX))
        .arg(&key);
    Reply::new(link.call(&call).await?, key).word()?;
    Ok(())
}

/// Takes all letters out of the inbox of `me`, the oldest first. One that cannot be read is dropped, with a warning.
pub(crate) async fn drain(link: &Link, me: &ReplicaId) -> Result<Vec<Envelope>, Failure> {
    let key = link.keys().mail(me);
    let age = u64::try_from(MAX_LETTER_AGE.as_millis()).unwrap_or(u64::MAX);
    let mut letters = Vec::new();
    loop {
        let call = Call::new(&DRAIN, &[&key]).arg(PORTION).arg(age);
        let reply = Reply::new(link.call(&call).await?, key.clone());
        reply.word()?;
        let taken = reply.number(1)?;
        for bytes in (2..).map_while(|at| reply.bytes(at)) {
            match read(reply.reader(), bytes) {
                Ok(envelope) => letters.push(envelope),
                Err(error) => tracing::warn!(%key, %error, "a letter that cannot be read was dropped"),
            }
        }
        if usize::try_from(taken).is_ok_and(|taken| taken < PORTION) {
            return Ok(letters);
        }
    }
}

/// Words, a line break, the body.
fn letter(envelope: &Envelope) -> Vec<u8> {
    let mut letter = format!(
        "from={} lease={} kind={} trace={}\n",
        encode(envelope.from.as_str()),
        encode(envelope.lease.as_str()),
        encode(&envelope.kind),
        trace_word(&envelope.trace)
    )
    .into_bytes();
    letter.extend_from_slice(&envelope.body);
    letter
}

fn read(reader: Reader<'_>, letter: &[u8]) -> Result<Envelope, Fault> {
    let end = letter.iter().position(|&byte| byte == b'\n').ok_or_else(|| reader.damage("it has no body"))?;
    let words = reader.utf8(&letter[..end])?;
    let word = |name| optional(words, name).ok_or_else(|| reader.damage(format!("a letter has no {name}")));
    Ok(Envelope {
        from: reader.replica(word("from")?)?,
        lease: LeaseName::new(reader.decoded(word("lease")?)?).map_err(|e| reader.damage(e.to_string()))?,
        kind: reader.decoded(word("kind")?)?.into(),
        body: letter[end + 1..].into(),
        trace: TraceContext::parse(word("trace")?),
    })
}
