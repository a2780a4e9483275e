//! The roster: who wants which lease, until when.

use crate::{
    db::{Db, Keep, Verdict},
    error::{Failure, Fault},
    field::Fields,
    row::number,
};
use leasehold_core::{Candidacy, LeaseName, Moment, roster::rank, timing::MAX_TTL};
use rusqlite::{Connection, Row};
use std::time::Duration;

/// Enters or refreshes a candidacy. An entry that has expired begins anew, at the end of its rank. No entry lasts
/// longer than the longest lease.
pub(crate) fn announce(db: &mut Db, candidacy: &Candidacy, ttl: Duration) -> Result<(), Failure> {
    db.write(Keep::ThroughCrash, |tx, site, now| {
        sweep(tx, &site.boot, now)?;
        tx.prepare_cached(
            "INSERT INTO candidate (lease, id, replica, priority, boot, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (lease, id) DO UPDATE SET replica = ?3, priority = ?4, boot = ?5, until = ?6",
        )?
        .execute((
            candidacy.name.as_str(),
            &candidacy.id.as_bytes()[..],
            candidacy.replica.as_str(),
            candidacy.priority,
            &*site.boot,
            number(now.after(ttl.min(MAX_TTL)).as_nanos()),
        ))?;
        Ok(Verdict::Changed(()))
    })
}

/// Removes a candidacy.
pub(crate) fn withdraw(db: &mut Db, candidacy: &Candidacy) -> Result<(), Failure> {
    db.write(Keep::ThroughCrash, |tx, _, _| {
        let sql = "DELETE FROM candidate WHERE lease = ?1 AND id = ?2";
        let key = (candidacy.name.as_str(), &candidacy.id.as_bytes()[..]);
        let gone = tx.prepare_cached(sql)?.execute(key)?;
        Ok(if gone > 0 { Verdict::Changed(()) } else { Verdict::Unchanged(()) })
    })
}

/// The living candidacies of a lease, in the order of their rank.
pub(crate) fn candidates(db: &mut Db, name: &LeaseName) -> Result<Vec<Candidacy>, Fault> {
    db.read(|conn, site, now| {
        let mut select = conn.prepare_cached(
            "SELECT joined, lease, id, replica, priority FROM candidate WHERE lease = ?1 AND boot = ?2 AND until > ?3",
        )?;
        let mut rows = select.query((name.as_str(), &*site.boot, number(now.as_nanos())))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(parse(row)?);
        }
        rank(&mut found);
        Ok(found.into_iter().map(|(candidacy, _)| candidacy).collect())
    })
}

fn parse(row: &Row<'_>) -> Result<(Candidacy, u64), Fault> {
    let fields = Fields::of(row, "candidate", "joined");
    let priority = fields.number("priority")?;
    let priority = i32::try_from(priority).map_err(|_| fields.damage("priority", "is out of range"))?;
    let joined =
        u64::try_from(fields.number("joined")?).map_err(|_| fields.damage("joined", "is negative"))?;
    let (name, replica, id) = (fields.name("lease")?, fields.name("replica")?, fields.attempt("id")?);
    Ok((Candidacy { name, replica, id, priority }, joined))
}

/// Forgets the entries that nobody refreshed, of whatever lease: their replicas may be gone for good.
fn sweep(conn: &Connection, boot: &str, now: Moment) -> Result<(), Fault> {
    let sql = "DELETE FROM candidate WHERE boot <> ?1 OR until <= ?2";
    conn.prepare_cached(sql)?.execute((boot, number(now.as_nanos())))?;
    Ok(())
}
