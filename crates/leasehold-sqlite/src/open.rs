//! Opening the database: never touching what is not ours, making what is missing.

use crate::{
    error::{Fault, missing},
    place::Place,
    site::Site,
};
use leasehold_core::{BootClock, Clock, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};
use std::{fs::File, sync::Arc, time::Duration};

const SCHEMA: &str = include_str!("schema.sql");
/// `PRAGMA application_id` of our files: "Leas".
pub(crate) const APPLICATION: i64 = 0x4C65_6173;
/// `PRAGMA user_version` that this program writes and knows.
pub(crate) const LAYOUT: i64 = 1;

/// What a file turns out to be.
enum Identity {
    Ours,
    Blank,
}

/// Opens a connection to the store of `site`, and lays the store out if there is none.
pub(crate) fn connect(site: &Arc<Site>) -> Result<Connection, Fault> {
    let place = &site.place;
    // SQLite must not meet an empty file before the lock is held: that file may still be open in another thread.
    if is_blank(place)? {
        let _lock = lock_creation(site)?;
        if is_blank(place)? {
            create_file(place)?;
        }
        return prepare(site, true);
    }
    prepare(site, false)
}

fn prepare(site: &Arc<Site>, locked: bool) -> Result<Connection, Fault> {
    let mut conn = Connection::open_with_flags(
        &site.place.db,
        // Without SQLITE_OPEN_URI: a path is a path. Without CREATE: we make files with our own rights.
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    be_patient(&mut conn, site)?;
    if conn.is_readonly("main")? {
        return Err(StoreErrorKind::ReadOnly.into());
    }
    match identify(&mut conn)? {
        Identity::Ours => {}
        Identity::Blank if locked => lay_out(&mut conn)?,
        Identity::Blank => {
            // Somebody is laying it out at this moment, or was ended before he could.
            drop(conn);
            let _lock = lock_creation(site)?;
            return prepare(site, true);
        }
    }
    settle_in(&conn)?;
    check_layout(&conn)?;
    Ok(conn)
}

/// Whether there is nothing at the path, or an empty file.
fn is_blank(place: &Place) -> Result<bool, Fault> {
    let Some(found) = place.look().map_err(Fault::file(&place.db))? else { return Ok(true) };
    if !found.is_file() {
        let found = if found.is_dir() { "a directory" } else { "not a regular file" };
        return Err(StoreErrorKind::Foreign { found: found.into() }.into());
    }
    Ok(found.len() == 0)
}

/// Keeps two processes from laying out one file. The lock falls with the file handle.
fn lock_creation(site: &Site) -> Result<File, Fault> {
    let file = site.place.open_beside(&site.place.wake)?;
    let start = BootClock.now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::Error(cause)) => return Err(Fault::file(&site.place.wake)(cause)),
            Err(std::fs::TryLockError::WouldBlock) if BootClock.now().since(start) < site.busy_timeout => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(StoreErrorKind::Locked(site.busy_timeout).into());
            }
        }
    }
}

fn create_file(place: &Place) -> Result<(), Fault> {
    if place.look().map_err(Fault::file(&place.db))?.is_some() {
        return Ok(()); // Made empty by somebody, with rights of his choice.
    }
    // The log and its index of a database that was removed while it was open. Those who have them open keep working
    // on the removed files; sharing the index with them would damage the new database.
    for leftover in place.leftovers() {
        drop(std::fs::remove_file(leftover));
    }
    Place::make_new(&place.db).map(drop)
}

/// Waits for locks of other processes in steps of a few milliseconds, for the busy timeout in all, and not at all
/// once the store is being dropped. SQLite's own handler waits up to 100 ms at a time.
fn be_patient(conn: &mut Connection, site: &Arc<Site>) -> Result<(), Fault> {
    let site = site.clone();
    let mut start = BootClock.now();
    conn.busy_handler(Some(move |waits: i32| {
        if waits == 0 {
            start = BootClock.now();
        }
        if site.is_closing() || BootClock.now().since(start) >= site.busy_timeout {
            return false;
        }
        std::thread::sleep(Duration::from_millis(if waits < 8 { 1 } else { 4 }));
        true
    }))?;
    Ok(())
}

fn identify(conn: &mut Connection) -> Result<Identity, Fault> {
    // One look: the file may be laid out by another process at this moment.
    let look = conn.transaction()?;
    let number = |sql| look.query_row(sql, (), |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let layout = number("PRAGMA user_version")?;
    let objects = number("SELECT count(*) FROM sqlite_schema")?;
    match (application, layout) {
        (APPLICATION, LAYOUT) => Ok(Identity::Ours),
        (APPLICATION, found) if found > LAYOUT => {
            Err(StoreErrorKind::NewerSchema { found, known: LAYOUT }.into())
        }
        (APPLICATION, found) => Err(Fault::damage(
            "PRAGMA user_version",
            format!("layout version {found} never existed; this program knows {LAYOUT}"),
        )),
        (0, 0) if objects == 0 => Ok(Identity::Blank),
        _ => {
            let found = format!(
                "a SQLite database of another application: application_id {application:#x}, user_version {layout}, \
                 {objects} tables and indexes"
            );
            Err(StoreErrorKind::Foreign { found: found.into() }.into())
        }
    }
}

fn lay_out(conn: &mut Connection) -> Result<(), Fault> {
    use_wal(conn)?;
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    tx.execute_batch(SCHEMA)?;
    tx.commit()?;
    Ok(())
}

/// Readers then never wait for writers, and a commit is one sequential write.
fn use_wal(conn: &Connection) -> Result<(), Fault> {
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(Fault::config(format!(
        "SQLite cannot use a write-ahead log here (it uses {mode:?}): this filesystem has no shared memory; put the \
         store on a local disk"
    )))
}

fn settle_in(conn: &Connection) -> Result<(), Fault> {
    use_wal(conn)?;
    conn.set_prepared_statement_cache_capacity(64);
    // fullfsync: on macOS an ordinary fsync does not reach the disk. trusted_schema, cell_size_check: a damaged or
    // hostile file shall fail, not run. The cache is small, since a store has few rows and a process may open many.
    conn.execute_batch(
        "PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; PRAGMA trusted_schema = OFF; \
         PRAGMA cell_size_check = ON; PRAGMA cache_size = -512; PRAGMA temp_store = MEMORY; \
         PRAGMA mmap_size = 0; PRAGMA journal_size_limit = 4194304; PRAGMA synchronous = FULL;",
    )?;
    Ok(())
}

/// Finds missing tables and columns now, by name, and not in the middle of an acquire.
fn check_layout(conn: &Connection) -> Result<(), Fault> {
    for table in ["lease", "note", "candidate", "letter", "gate"] {
        let expected = columns_in_schema(table);
        let sql = format!("SELECT {} FROM {table} LIMIT 0", expected.join(", "));
        conn.prepare(&sql).map_err(|error| match missing(&error) {
            Some(what) => Fault::damage(format!("table {table}"), what),
            None => error.into(),
        })?;
    }
    Ok(())
}

/// The names of a table's columns, from the schema's text: one a line, after two spaces.
fn columns_in_schema(table: &str) -> Vec<&'static str> {
    let start = format!("CREATE TABLE {table} (");
    SCHEMA
        .lines()
        .skip_while(|line| *line != start)
        .skip(1)
        .take_while(|line| !line.starts_with(')'))
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_says_what_the_program_checks() {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(SCHEMA).unwrap();
        check_layout(&conn).unwrap();
        assert!(matches!(identify(&mut conn), Ok(Identity::Ours)));
        let columns: i64 =
            conn.query_row("SELECT count(*) FROM pragma_table_info('lease')", (), |r| r.get(0)).unwrap();
        assert_eq!(columns_in_schema("lease").len() as i64, columns);
    }
}
