//! Renewing claims: any number in one statement and one commit, each answered for itself.

use crate::{
    error::{Failure, Fault},
    fields::{Fields, key, micros, number},
    link::{Again, Link},
};
use leasehold_core::{NotHolder, Renew, Renewal, StoreErrorKind, bounds};
use tokio_postgres::{Row, types::Type};

/// Renews claims. Rule 3.
pub(crate) async fn renew(link: &Link, renewals: &[Renewal]) -> Vec<Result<Renew, Failure>> {
    let sound: Vec<&Renewal> = renewals.iter().filter(|renewal| bounds::ttl(renewal.ttl).is_ok()).collect();
    let asked = if sound.is_empty() { Ok(Vec::new()) } else { ask(link, &sound).await };
    let mut rows = match &asked {
        Ok(rows) => Ok(rows.iter()),
        Err(failure) => Err(failure),
    };
    let answer = |renewal: &Renewal| {
        bounds::ttl(renewal.ttl)?;
        match &mut rows {
            Ok(rows) => match rows.next() {
                Some(row) => Ok(answer(renewal, row)?),
                None => Err(Fault::damage("the layout", "its function renew left a claim out").into()),
            },
            // One failure for all: each claim's answer names its own lease.
            Err(failure) => Err(failure.clone()),
        }
    };
    renewals.iter().map(answer).collect()
}

async fn ask(link: &Link, renewals: &[&Renewal]) -> Result<Vec<Row>, Failure> {
    let names: Vec<&str> = renewals.iter().map(|renewal| renewal.claim.name.as_str()).collect();
    let replicas: Vec<&str> = renewals.iter().map(|renewal| renewal.claim.replica.as_str()).collect();
    let attempts: Vec<&[u8]> = renewals.iter().map(|renewal| &renewal.claim.attempt.as_bytes()[..]).collect();
    let fences: Vec<i64> = renewals.iter().map(|renewal| number(renewal.claim.fence)).collect();
    let ttls: Vec<i64> = renewals.iter().map(|renewal| micros(renewal.ttl)).collect();
    let params = [
        (&names as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT_ARRAY),
        (&replicas, Type::TEXT_ARRAY),
        (&attempts, Type::BYTEA_ARRAY),
        (&fences, Type::INT8_ARRAY),
        (&ttls, Type::INT8_ARRAY),
    ];
    link.ask(&link.texts().renew, &params, Again::May).await
}

fn answer(renewal: &Renewal, row: &Row) -> Result<Renew, Fault> {
    let key = key(renewal.claim.name.as_str());
    let fields = Fields::of(row, &key);
    match fields.some::<&str>("answer")? {
        "renewed" => Ok(Renew::Renewed { remaining: renewal.ttl }),
        "over" => Ok(Renew::NotHolder(not_holder(fields)?)),
        "unwitnessed" => Err(StoreErrorKind::Unwitnessed.into()),
        "damaged" => Err(Fault::damage(&*key, fields.some::<&str>("problem")?)),
        other => Err(fields.damage("answer", format_args!("{other:?} is unexpected"))),
    }
}

/// What somebody is told whose claim is not the living one.
pub(crate) fn not_holder(fields: Fields<'_>) -> Result<NotHolder, Fault> {
    let holder = match fields.maybe_replica("holder")? {
        None => None,
        Some(replica) => Some((replica, fields.fence("fence")?)),
    };
    Ok(NotHolder { holder, highest: fields.maybe_fence("highest")? })
}
