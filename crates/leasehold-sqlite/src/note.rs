//! Notes: left by one term, given to the very next one, kept while that one may ask again.

use crate::{error::Fault, field::Fields, row::number};
use leasehold_core::{Fence, LeaseName, Note, note::MAX_NOTE_BYTES};
use rusqlite::{Connection, OptionalExtension, Row};

/// Gives the waiting note, if there is one, to the term under `fence`, and removes the one that the term before was
/// given.
pub(crate) fn give(conn: &Connection, lease: &LeaseName, fence: Fence) -> Result<Option<Note>, Fault> {
    let note = find(conn, lease, None)?;
    if note.is_some() {
        let sql = "UPDATE note SET given_to = ?2 WHERE lease = ?1";
        conn.prepare_cached(sql)?.execute((lease.as_str(), number(fence.get())))?;
    } else {
        leave(conn, lease, None)?;
    }
    Ok(note)
}

/// The note that the term under `fence` was given (invariant I9: the same answer to the same attempt).
pub(crate) fn given(conn: &Connection, lease: &LeaseName, fence: Fence) -> Result<Option<Note>, Fault> {
    find(conn, lease, Some(fence))
}

/// Leaves a note for the next term; what was given to the present one goes.
pub(crate) fn leave(conn: &Connection, lease: &LeaseName, note: Option<&Note>) -> Result<(), Fault> {
    conn.prepare_cached("DELETE FROM note WHERE lease = ?1")?.execute([lease.as_str()])?;
    if let Some(note) = note {
        conn.prepare_cached("INSERT INTO note (lease, written_under, bytes) VALUES (?1, ?2, ?3)")?
            .execute((lease.as_str(), number(note.from().get()), note.bytes()))?;
    }
    Ok(())
}

/// Reads the one note of a lease, if it is for this term: for the next one, or for the one under a fence.
fn find(conn: &Connection, lease: &LeaseName, term: Option<Fence>) -> Result<Option<Note>, Fault> {
    let mut select =
        conn.prepare_cached("SELECT lease, written_under, given_to, bytes FROM note WHERE lease = ?1")?;
    let found = select.query_row([lease.as_str()], |row| Ok(parse(row))).optional()?.transpose()?;
    Ok(found.filter(|(given_to, _)| *given_to == term).map(|(_, note)| note))
}

fn parse(row: &Row<'_>) -> Result<(Option<Fence>, Note), Fault> {
    let fields = Fields::of(row, "note", "lease");
    let (from, given_to) = (fields.fence("written_under")?, fields.maybe_fence("given_to")?);
    let bytes = fields.bytes("bytes")?;
    let note = Note::new(from, bytes).map_err(|_| {
        fields.damage("bytes", format_args!("has {} bytes, {MAX_NOTE_BYTES} at most", bytes.len()))
    })?;
    Ok((given_to, note))
}
