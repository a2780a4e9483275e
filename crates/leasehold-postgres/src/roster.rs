//! Who wants which lease.

use crate::{
    error::{Failure, Fault},
    fields::{Fields, micros},
    link::{Again, Link},
};
use leasehold_core::{Candidacy, LeaseName, roster::rank, timing::MAX_TTL};
use std::time::Duration;
use tokio_postgres::{Row, types::Type};

pub(crate) async fn announce(link: &Link, candidacy: &Candidacy, ttl: Duration) -> Result<(), Failure> {
    let Candidacy { name, replica, id, priority } = candidacy;
    link.ask(
        &link.texts().announce,
        &[
            (&name.as_str(), Type::TEXT),
            (&&id.as_bytes()[..], Type::BYTEA),
            (&replica.as_str(), Type::TEXT),
            (priority, Type::INT4),
            (&micros(ttl.min(MAX_TTL)), Type::INT8),
        ],
        Again::May,
    )
    .await?;
    Ok(())
}

pub(crate) async fn withdraw(link: &Link, candidacy: &Candidacy) -> Result<(), Failure> {
    let Candidacy { name, id, .. } = candidacy;
    let id = &id.as_bytes()[..];
    link.ask(&link.texts().withdraw, &[(&name.as_str(), Type::TEXT), (&id, Type::BYTEA)], Again::May).await?;
    Ok(())
}

pub(crate) async fn candidates(link: &Link, name: &LeaseName) -> Result<Vec<Candidacy>, Failure> {
    let rows = link.ask(&link.texts().candidates, &[(&name.as_str(), Type::TEXT)], Again::May).await?;
    let mut seats = rows.iter().map(|row| seat(row, name)).collect::<Result<Vec<_>, _>>()?;
    rank(&mut seats);
    Ok(seats.into_iter().map(|(candidacy, _)| candidacy).collect())
}

/// A candidacy and its place in the order of joining.
fn seat(row: &Row, name: &LeaseName) -> Result<(Candidacy, u64), Fault> {
    let key = format!("table candidate, lease {:?}", name.as_str());
    let fields = Fields::of(row, &key);
    let candidacy = Candidacy {
        name: name.clone(),
        replica: fields.replica("replica")?,
        id: fields.attempt("id")?,
        priority: fields.some("priority")?,
    };
    let joined = fields.some::<i64>("joined")?;
    Ok((candidacy, joined.unsigned_abs()))
}
