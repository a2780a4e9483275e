//! Who wants which lease.

use crate::{
    acquire::millis,
    error::{Failure, Fault},
    link::Link,
    record::{Reader, encode, optional},
    reply::Reply,
    script::{Call, Script, script},
};
use leasehold_core::{AttemptId, Candidacy, LeaseName, roster::rank, timing::MAX_TTL};
use std::time::Duration;

static ANNOUNCE: Script = script!("announce");
static WITHDRAW: Script = script!("withdraw");
static CANDIDATES: Script = script!("candidates");

pub(crate) async fn announce(link: &Link, candidacy: &Candidacy, ttl: Duration) -> Result<(), Failure> {
    let (key, ends) = (link.keys().roster(&candidacy.name), link.keys().ends(&candidacy.name));
    let call = Call::new(&ANNOUNCE, &[&key, &ends])
        .arg(candidacy.id.to_hex())
        .arg(millis(ttl.min(MAX_TTL)).max(1))
        .arg(candidacy.priority)
        .arg(encode(candidacy.replica.as_str()))
        .repeatable();
    Reply::new(link.call(&call).await?, key).word()?;
    Ok(())
}

pub(crate) async fn withdraw(link: &Link, candidacy: &Candidacy) -> Result<(), Failure> {
    let (key, ends) = (link.keys().roster(&candidacy.name), link.keys().ends(&candidacy.name));
    let call = Call::new(&WITHDRAW, &[&key, &ends]).arg(candidacy.id.to_hex()).repeatable();
    Reply::new(link.call(&call).await?, key).word()?;
    Ok(())
}

pub(crate) async fn candidates(link: &Link, name: &LeaseName) -> Result<Vec<Candidacy>, Failure> {
    let key = link.keys().roster(name);
    let reply = Reply::new(link.call(&Call::new(&CANDIDATES, &[&key]).repeatable()).await?, key);
    reply.word()?;
    let mut seats = Vec::new();
    let mut at = 1;
    while reply.bytes(at).is_some() {
        seats.push(seat(reply.reader(), name, reply.text(at)?, reply.text(at + 1)?)?);
        at += 2;
    }
    rank(&mut seats);
    Ok(seats.into_iter().map(|(candidacy, _)| candidacy).collect())
}

/// A candidacy and when it joined.
fn seat(reader: Reader<'_>, name: &LeaseName, id: &str, words: &str) -> Result<(Candidacy, u64), Fault> {
    let damaged = || reader.damage("a candidacy cannot be read");
    let number = |word| optional(words, word).ok_or_else(damaged);
    let candidacy = Candidacy {
        name: name.clone(),
        replica: reader.replica(number("replica")?)?,
        id: AttemptId::from_hex(id).ok_or_else(damaged)?,
        priority: number("priority")?.parse().map_err(|_| damaged())?,
    };
    Ok((candidacy, number("joined")?.parse().map_err(|_| damaged())?))
}
