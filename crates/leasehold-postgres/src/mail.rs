//! Letters between replicas.

use crate::{
    error::{Failure, Fault},
    fields::{Fields, micros},
    link::{Again, Link, Param},
};
use leasehold_core::{
    Envelope, LeaseName, ReplicaId, bounds,
    mail::{MAX_LETTER_AGE, MAX_LETTERS},
};
use std::sync::Arc;
use tokio_postgres::{Row, types::Type};

/// How many letters are taken in one step: their bodies are at most 64 KiB each.
pub(crate) const PORTION: i32 = 16;

pub(crate) async fn post(link: &Link, to: &ReplicaId, envelope: &Envelope) -> Result<(), Failure> {
    bounds::letter(envelope)?;
    if envelope.kind.contains('\0') {
        // What the server cannot keep in a text.
        let problem = "the kind of a letter cannot hold a NUL; it was not sent";
        return Err(leasehold_core::StoreErrorKind::Config(problem.into()).into());
    }
    link.ask(
        &link.texts().post,
        &[
            (&to.as_str(), Type::TEXT),
            (&envelope.from.as_str(), Type::TEXT),
            (&envelope.lease.as_str(), Type::TEXT),
            (&&*envelope.kind, Type::TEXT),
            (&&*envelope.body, Type::BYTEA),
            (&envelope.trace.traceparent(), Type::TEXT),
            (&i32::try_from(MAX_LETTERS).unwrap_or(i32::MAX), Type::INT4),
            (&micros(MAX_LETTER_AGE), Type::INT8),
        ],
        // At most once.
        Again::MustNot,
    )
    .await?;
    Ok(())
}

/// What takes letters out of the inbox of `me`.
pub(crate) fn drain<'a>(me: &'a &str, age: &'a i64) -> [Param<'a>; 3] {
    [(me, Type::TEXT), (&PORTION, Type::INT4), (age, Type::INT8)]
}

/// For how long letters wait, in microseconds.
pub(crate) fn age() -> i64 {
    micros(MAX_LETTER_AGE)
}

/// The letters of some rows that were taken. One that cannot be read is dropped, with a warning.
pub(crate) fn read(rows: &[Row], me: &ReplicaId) -> Vec<Envelope> {
    let mut letters = Vec::new();
    for row in rows {
        match letter(row) {
            Ok(Some(letter)) => letters.push(letter),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(replica = %me, %error, "a letter that cannot be read was dropped");
            }
        }
    }
    letters
}

fn letter(row: &Row) -> Result<Option<Envelope>, Fault> {
    let fields = Fields::of(row, "table letter");
    if !fields.some::<bool>("fresh")? {
        return Ok(None);
    }
    let lease =
        LeaseName::new(fields.some::<&str>("lease")?).map_err(|error| fields.damage("lease", error))?;
    Ok(Some(Envelope {
        from: fields.replica("sender")?,
        lease,
        kind: Arc::from(fields.some::<&str>("kind")?),
        body: fields.some::<&[u8]>("body")?.into(),
        trace: fields.trace("trace")?,
    }))
}
