//! Letters: kept until somebody reads them, for a minute at most.

use crate::{
    db::{Db, Keep, Verdict},
    error::{Failure, Fault},
    field::Fields,
    row::number,
};
use leasehold_core::{
    Envelope, Moment, ReplicaId, bounds,
    mail::{MAX_LETTER_AGE, MAX_LETTER_BYTES, MAX_LETTERS},
};
use rusqlite::{Connection, Row};
use std::collections::HashSet;
use tokio::sync::mpsc;

/// Puts a letter into an inbox. The oldest give way to it when the inbox is full.
pub(crate) fn post(db: &mut Db, to: &ReplicaId, letter: &Envelope) -> Result<(), Failure> {
    bounds::letter(letter)?;
    db.write(Keep::ThroughCrash, |tx, site, now| {
        sweep(tx, &site.boot, now)?;
        tx.prepare_cached(
            "INSERT INTO letter (inbox, sender, lease, kind, body, trace, boot, posted) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            to.as_str(),
            letter.from.as_str(),
            letter.lease.as_str(),
            &*letter.kind,
            &*letter.body,
            letter.trace.traceparent(),
            &*site.boot,
            number(now.as_nanos()),
        ))?;
        tx.prepare_cached(
            "DELETE FROM letter WHERE inbox = ?1 AND number <= \
             (SELECT number FROM letter WHERE inbox = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute((to.as_str(), MAX_LETTERS as i64))?;
        Ok(Verdict::Turned(()))
    })
}

/// The replicas for which letters lie.
pub(crate) fn addressees(conn: &Connection) -> Result<HashSet<String>, Fault> {
    let mut select = conn.prepare_cached("SELECT DISTINCT inbox FROM letter")?;
    let mut rows = select.query(())?;
    let mut found = HashSet::new();
    while let Some(row) = rows.next()? {
        // An inbox that is no text is nobody's.
        if let Ok(inbox) = row.get_ref(0)?.as_str() {
            found.insert(inbox.to_owned());
        }
    }
    Ok(found)
}

/// Moves letters from the store into an open inbox, as many as fit. They are removed in the transaction that reads
/// them, before the reader sees them: at most once. One that cannot be read is left where it is.
pub(crate) fn deliver(db: &mut Db, me: &ReplicaId, inbox: &mpsc::Sender<Envelope>) -> Result<(), Failure> {
    let room = inbox.capacity();
    if inbox.is_closed() || room == 0 {
        return Ok(());
    }
    let letters = db.write(Keep::ThroughCrash, |tx, site, now| {
        let old = sweep(tx, &site.boot, now)?;
        let mut select = tx.prepare_cached(
            "SELECT number, sender, lease, kind, body, trace FROM letter WHERE inbox = ?1 ORDER BY number LIMIT ?2",
        )?;
        let mut rows = select.query((me.as_str(), room as i64))?;
        let mut taken = Vec::new();
        while let Some(row) = rows.next()? {
            match parse(row) {
                Ok(letter) => taken.push(letter),
                Err(fault) => tracing::warn!(store = %site.address, %fault, "a letter cannot be read"),
            }
        }
        for (number, _) in &taken {
            tx.prepare_cached("DELETE FROM letter WHERE number = ?1")?.execute([number])?;
        }
        Ok(if taken.is_empty() && !old { Verdict::Unchanged(taken) } else { Verdict::Changed(taken) })
    })?;
    for (_, letter) in letters {
        // There was room, and only this thread fills the inbox; a reader that closed it meanwhile wants no mail.
        drop(inbox.try_send(letter));
    }
    Ok(())
}

fn parse(row: &Row<'_>) -> Result<(i64, Envelope), Fault> {
    let fields = Fields::of(row, "letter", "number");
    let body = fields.bytes("body")?;
    if body.len() > MAX_LETTER_BYTES {
        return Err(
            fields.damage("body", format_args!("has {} bytes, {MAX_LETTER_BYTES} at most", body.len()))
        );
    }
    let letter = Envelope {
        from: fields.name("sender")?,
        lease: fields.name("lease")?,
        kind: fields.text("kind")?,
        body: body.into(),
        trace: fields.trace("trace")?,
    };
    Ok((fields.number("number")?, letter))
}

/// Removes letters that are too old, or of an earlier boot; whether there were any.
fn sweep(conn: &Connection, boot: &str, now: Moment) -> Result<bool, Fault> {
    let sql = "DELETE FROM letter WHERE boot <> ?1 OR posted <= ?2";
    let oldest = now.as_nanos().checked_sub(MAX_LETTER_AGE.as_nanos() as u64);
    // A host that is up for less than a minute has no old letters.
    let oldest = oldest.map_or(-1, number);
    Ok(conn.prepare_cached(sql)?.execute((boot, oldest))? > 0)
}
