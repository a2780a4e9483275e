//! Asking for a lease.

use crate::{
    error::{Failure, Fault},
    fields::{Fields, key, micros, number, only},
    link::{Again, Link},
};
use leasehold_core::{Acquire, Bid, Granted, Held, Note, StoreErrorKind, bounds};
use tokio_postgres::types::Type;

/// Carries out a bid; `witness` is the lock that this process holds. Rules 1, 2, 4, 5, 6.
pub(crate) async fn acquire(link: &Link, bid: &Bid, witness: Option<i64>) -> Result<Acquire, Failure> {
    bounds::ttl(bid.ttl)?;
    let rows = link
        .ask(
            &link.texts().acquire,
            &[
                (&bid.name.as_str(), Type::TEXT),
                (&bid.replica.as_str(), Type::TEXT),
                (&&bid.attempt.as_bytes()[..], Type::BYTEA),
                (&micros(bid.ttl), Type::INT8),
                (&bid.floor.map(number), Type::INT8),
                (&witness, Type::INT8),
                (&bid.trace.traceparent(), Type::TEXT),
            ],
            // The attempt id makes it the same acquisition.
            Again::May,
        )
        .await?;
    let key = key(bid.name.as_str());
    let fields = Fields::of(only(&rows)?, &key);
    match fields.some::<&str>("answer")? {
        // From here on the lease is ours: what cannot be read of it is no reason to say that it is not.
        "granted" => match granted(fields, bid) {
            Ok(granted) => Ok(Acquire::Granted(granted)),
            Err(fault) => Err(Failure { fault, perhaps_done: true }),
        },
        answer @ ("held" | "reserved") => Ok(Acquire::Held(Held {
            by: fields.replica("holder")?,
            fence: fields.fence("fence")?,
            remaining: fields.span("micros")?,
            reserved: answer == "reserved",
        })),
        "spent" => Err(StoreErrorKind::SpentAttempt.into()),
        "exhausted" => Err(StoreErrorKind::FenceExhausted(fields.fence("fence")?).into()),
        "damaged" => Err(Fault::damage(&*key, fields.some::<&str>("problem")?).into()),
        other => Err(fields.damage("answer", format_args!("{other:?} is unexpected")).into()),
    }
}

fn granted(fields: Fields<'_>, bid: &Bid) -> Result<Granted, Fault> {
    let inherited = match fields.maybe::<&[u8]>("note")? {
        None => None,
        Some(bytes) => {
            let note = Note::new(fields.fence("note_from")?, bytes);
            Some(note.map_err(|error| fields.damage("note", error))?)
        }
    };
    Ok(Granted {
        claim: bid.granted(fields.fence("fence")?),
        remaining: bid.ttl,
        predecessor: fields.predecessor()?,
        inherited,
    })
}
