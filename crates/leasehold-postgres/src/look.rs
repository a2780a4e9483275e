//! Looking at leases without changing them.

use crate::{
    error::{Failure, Fault},
    fields::{Fields, key},
    link::{Again, Link, Param},
};
use leasehold_core::{Claim, LeaseName, LeaseRecord, LeaseState};
use tokio_postgres::{Row, types::Type};

/// What one row shows, and the witness of its holder.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) record: LeaseRecord,
    pub(crate) witness: Option<i64>,
}

/// A row that was read: what it shows, or its damage, with its name if that can be read.
pub(crate) type Read = (Option<LeaseName>, Result<Seen, Fault>);

/// The state of one lease.
pub(crate) async fn one(link: &Link, name: &LeaseName) -> Result<LeaseRecord, Failure> {
    let rows = link.ask(&link.texts().look, &these(&[name.as_str()].as_slice()), Again::May).await?;
    match rows.first() {
        None => Ok(LeaseRecord::unknown(name.clone())),
        Some(row) => Ok(read(row).1?.record),
    }
}

/// Every lease that begins with `prefix`, by name.
pub(crate) async fn list(link: &Link, prefix: &str) -> Result<Vec<Read>, Failure> {
    let rows = link.ask(&link.texts().look, &all(&prefix), Again::May).await?;
    Ok(rows.iter().map(read).collect())
}

/// What asks for leases by their names.
pub(crate) fn these<'a>(names: &'a (impl tokio_postgres::types::ToSql + Sync)) -> [Param<'a>; 2] {
    [(names, Type::TEXT_ARRAY), (&None::<&str>, Type::TEXT)]
}

/// What asks for all leases whose names begin so.
pub(crate) fn all<'a>(prefix: &'a &str) -> [Param<'a>; 2] {
    [(&None::<Vec<&str>>, Type::TEXT_ARRAY), (prefix, Type::TEXT)]
}

/// One row of the function `look`.
pub(crate) fn read(row: &Row) -> Read {
    let name = row.try_get::<_, &str>("name").unwrap_or_default();
    let key = key(name);
    let fields = Fields::of(row, &key);
    match LeaseName::new(name) {
        Ok(name) => {
            let seen = seen(fields, &name);
            (Some(name), seen)
        }
        Err(error) => (None, Err(fields.damage("name", error))),
    }
}

fn seen(fields: Fields<'_>, name: &LeaseName) -> Result<Seen, Fault> {
    if let Some(problem) = fields.maybe::<&str>("problem")? {
        return Err(Fault::damage(key(name.as_str()), problem));
    }
    let counter = fields.fence("counter")?;
    let witness = fields.maybe::<i64>("witness")?;
    let state = match (fields.maybe_replica("replica")?, fields.maybe_replica("heir")?) {
        (Some(replica), _) => LeaseState::Held {
            claim: Claim { name: name.clone(), replica, attempt: fields.attempt("attempt")?, fence: counter },
            remaining: fields.span("micros")?,
            held_for: fields.span("held_for")?,
            crash_witness: witness.is_some(),
        },
        (None, Some(heir)) => LeaseState::Reserved { heir, remaining: fields.span("heir_micros")? },
        (None, None) => LeaseState::Vacant,
    };
    let record =
        LeaseRecord { name: name.clone(), counter: Some(counter), state, predecessor: fields.predecessor()? };
    Ok(Seen { record, witness })
}
