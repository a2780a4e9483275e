//! Release, by the holder and by force: the ends of a term that somebody asks for.

use crate::{
    error::{Failure, Fault},
    fields::{Fields, key, micros, number, only},
    link::{Again, Link},
    renew::not_holder,
};
use leasehold_core::{Claim, Force, LeaseName, Parting, Release, ReplicaId, bounds, timing::MAX_TTL};
use tokio_postgres::types::Type;

/// Ends a claim. Rules 3 and 5.
pub(crate) async fn release(link: &Link, claim: &Claim, parting: &Parting) -> Result<Release, Failure> {
    let heir = parting.heir.as_ref();
    let note = parting.note.as_ref();
    let rows = link
        .ask(
            &link.texts().release,
            &[
                (&claim.name.as_str(), Type::TEXT),
                (&claim.replica.as_str(), Type::TEXT),
                (&&claim.attempt.as_bytes()[..], Type::BYTEA),
                (&number(claim.fence), Type::INT8),
                (&heir.map(|(heir, _)| heir.as_str()), Type::TEXT),
                // No window is longer than the longest lease.
                (&heir.map(|(_, window)| micros((*window).min(MAX_TTL))), Type::INT8),
                (&note.map(|note| note.bytes()), Type::BYTEA),
                (&note.map(|note| number(note.from())), Type::INT8),
                (&parting.trace.traceparent(), Type::TEXT),
            ],
            // The second of two would be told that the claim is over.
            Again::MustNot,
        )
        .await?;
    let key = key(claim.name.as_str());
    let fields = Fields::of(only(&rows)?, &key);
    match fields.some::<&str>("answer")? {
        "released" => Ok(Release::Released),
        "over" => Ok(Release::NotHolder(not_holder(fields)?)),
        "damaged" => Err(Fault::damage(&*key, fields.some::<&str>("problem")?).into()),
        other => Err(fields.damage("answer", format_args!("{other:?} is unexpected")).into()),
    }
}

/// Ends whatever claim lives.
pub(crate) async fn force(
    link: &Link,
    name: &LeaseName,
    by: &ReplicaId,
    reason: &str,
) -> Result<Force, Failure> {
    bounds::reason(reason)?;
    let params = [
        (&name.as_str() as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
        (&by.as_str(), Type::TEXT),
        (&reason, Type::TEXT),
    ];
    let rows = link.ask(&link.texts().force, &params, Again::MustNot).await?;
    let key = key(name.as_str());
    let fields = Fields::of(only(&rows)?, &key);
    match fields.some::<&str>("answer")? {
        "forced" => {
            let read =
                || Ok(Force::Forced { fence: fields.fence("fence")?, replica: fields.replica("holder")? });
            read().map_err(|fault| Failure { fault, perhaps_done: true })
        }
        "vacant" => Ok(Force::Vacant),
        "damaged" => Err(Fault::damage(&*key, fields.some::<&str>("problem")?).into()),
        other => Err(fields.damage("answer", format_args!("{other:?} is unexpected")).into()),
    }
}
