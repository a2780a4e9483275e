//! What an operator should know: conditions of the host and of the file that endanger leases.

use crate::{
    bell::Listener,
    boot::HostClock,
    db::Db,
    disk::{Disk, DiskKind},
    error::Fault,
    look,
    site::Site,
};
use leasehold_core::{Finding, Severity};
use std::os::unix::fs::MetadataExt;

/// Below this the next checkpoint or a full letterbox may not fit.
const LITTLE_ROOM: u64 = 16 * 1024 * 1024;

/// Looks at everything, worst first. Reads the whole file: it is small.
pub(crate) fn diagnose(db: &mut Db) -> Result<Vec<Finding>, Fault> {
    let mut found = Vec::new();
    let site = db.site.clone();
    disk(&site, &mut found);
    files(&site, &mut found)?;
    database(db, &mut found)?;
    host(&site, &mut found);
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(found)
}

fn report(found: &mut Vec<Finding>, severity: Severity, code: &'static str, text: impl Into<String>) {
    found.push(Finding { severity, code, text: text.into() });
}

fn disk(site: &Site, found: &mut Vec<Finding>) {
    let Some(disk) = Disk::of(&site.place.db) else { return };
    let db = site.place.db.display();
    match disk.kind {
        DiskKind::Ordinary => {}
        DiskKind::Memory => report(
            found,
            Severity::Warning,
            "tmpfs",
            format!(
                "{db} is on a filesystem in memory. A restart of the host forgets the fence counters, and resources \
                 that remember higher fences then refuse new holders until they overtake. Put the file on a disk."
            ),
        ),
        DiskKind::Layer => report(
            found,
            Severity::Warning,
            "container-layer",
            format!(
                "{db} is in a container's own layer. No other container sees these leases, and they end with the \
                 container. Put the file on a volume that all its users mount."
            ),
        ),
        DiskKind::Remote(kind) => report(
            found,
            Severity::Danger,
            "network-filesystem",
            format!(
                "{db} is on {kind}. SQLite's log needs memory and locks that all users of the file share, so two \
                 hosts or two guests would both be granted one lease. Put the file on a local disk, or use a store \
                 with a server."
            ),
        ),
    }
    if disk.read_only {
        report(
            found,
            Severity::Danger,
            "read-only",
            format!("The disk of {db} is read-only. No lease can be taken or renewed. Mount it writable."),
        );
    } else if disk.free < LITTLE_ROOM {
        report(
            found,
            Severity::Warning,
            "little-room",
            format!(
                "The disk of {db} has {} KiB left. Once it is full no lease can be taken or renewed. Free some space.",
                disk.free / 1024
            ),
        );
    }
}

fn files(site: &Site, found: &mut Vec<Finding>) -> Result<(), Fault> {
    let place = &site.place;
    let db = place.db.display();
    let Some(file) = place.look().map_err(Fault::file(&place.db))? else { return Ok(()) };
    let mode = file.mode() & 0o777;
    if mode & 0o077 != 0 {
        report(
            found,
            Severity::Warning,
            "file-mode",
            format!(
                "{db} has mode {mode:04o}. Whoever can write it can take, end or forge every lease in it, and \
                 whoever can read it sees the notes. Unless that is wanted: chmod 600 on it and the files beside it."
            ),
        );
    }
    if file.nlink() > 1 {
        report(
            found,
            Severity::Danger,
            "hard-link",
            format!(
                "{db} has {} names (hard links). A process that opens another name does not see this one's log, and \
                 both would be granted one lease. Remove the other names.",
                file.nlink()
            ),
        );
    }
    let open_to_all =
        place.db.parent().and_then(|dir| std::fs::metadata(dir).ok()).map_or(0, |dir| dir.mode());
    if open_to_all & 0o002 != 0 && open_to_all & 0o1000 == 0 {
        report(
            found,
            Severity::Warning,
            "open-directory",
            format!(
                "Everybody may rename and remove files in the directory of {db}. A removed file takes the fence \
                 counters with it. Take the right to write from others: chmod o-w."
            ),
        );
    }
    Ok(())
}

fn database(db: &mut Db, found: &mut Vec<Finding>) -> Result<(), Fault> {
    let (mode, check, damaged) = db.read(|conn, site, now| {
        let mode: String = conn.query_row("PRAGMA journal_mode", (), |row| row.get(0))?;
        let check: String = conn.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
        let (leases, _) = look::many(conn, site, now, "ORDER BY name", (), |_| true)?;
        let damaged: Vec<_> = leases.into_iter().filter_map(|seen| Some(seen.err()?.1.to_string())).collect();
        Ok((mode, check, damaged))
    })?;
    if mode != "wal" {
        report(
            found,
            Severity::Danger,
            "wal-off",
            format!(
                "The journal mode is {mode:?} instead of wal, so somebody changed it. Readers and writers block each \
                 other until the store is opened anew, which sets it right."
            ),
        );
    }
    if check != "ok" {
        report(
            found,
            Severity::Danger,
            "corrupt",
            format!(
                "SQLite finds the file malformed: {check}. Leases may be refused or lost. Stop all users, save the \
                 file, and restore it with `sqlite3 FILE .recover`."
            ),
        );
    }
    if let [first, ..] = &damaged[..] {
        report(
            found,
            Severity::Warning,
            "damaged-rows",
            format!(
                "{} leases cannot be read and are refused to everybody; the first: {first}. The others are not \
                 affected. Repair or delete the rows.",
                damaged.len()
            ),
        );
    }
    Ok(())
}

fn host(site: &Site, found: &mut Vec<Finding>) {
    if let Err(cause) = Listener::new(&site.place, |_| {}) {
        report(
            found,
            Severity::Warning,
            "no-events",
            format!(
                "The system gives no more file events ({cause}). Waiting replicas look fifty times a second instead. \
                 On Linux raise fs.inotify.max_user_instances."
            ),
        );
    }
    if HostClock::new().is_shifted() {
        report(
            found,
            Severity::Info,
            "time-namespace",
            "This process lives in a time namespace. Its boot clock is shifted, and the store takes the shift off. \
             Nothing needs to be done.",
        );
    }
    if !cfg!(any(target_os = "linux", target_os = "android", target_os = "macos")) {
        report(
            found,
            Severity::Warning,
            "clock",
            "This system's monotonic clock may stand still while the host is suspended. A claim then outlives its \
             ttl by that time. Do not suspend the host.",
        );
    }
}
