//! Fence marks, and the gates that keep writers apart.

use crate::{
    db::{Db, Keep, Verdict},
    error::{Failure, Fault},
    field::Fields,
    place::{FileId, Place},
    row::{Row, number},
};
use leasehold_core::{Admit, Fence, LeaseName, ResourceName, Stale, StoreErrorKind, Verb};
use rusqlite::{Connection, OptionalExtension};
use std::{
    collections::HashMap,
    fs::{File, TryLockError},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::sync::{Mutex as QueueLock, OwnedMutexGuard};

/// The longest pause between two tries at a gate that another process holds.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A gate's mark, as stored.
struct Mark {
    number: i64,
    highest: Option<Fence>,
}

/// Accepts `fence` and remembers it, or says why not (invariant I1).
pub(crate) fn admit(db: &mut Db, resource: &ResourceName, lease: &LeaseName, fence: Fence) -> Admit {
    let site = db.site.clone();
    pass(db, resource, lease, fence, true).map_or_else(
        |Failure { fault, perhaps_done }| {
            let error = fault.told(&site, Verb::CheckFence, Some(lease));
            if perhaps_done { Admit::Unknown(error) } else { Admit::Refused(error) }
        },
        |passed| passed.map_or_else(Admit::Stale, |_| Admit::Accepted),
    )
}

/// The number of a gate through which `fence` might go, as far as is known before it is its turn. A stale one need
/// not queue.
pub(crate) fn approach(
    db: &mut Db,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
) -> Result<i64, Admit> {
    let site = db.site.clone();
    match pass(db, resource, lease, fence, false) {
        Ok(Ok(number)) => Ok(number),
        Ok(Err(stale)) => Err(Admit::Stale(stale)),
        Err(Failure { fault, .. }) => Err(Admit::Refused(fault.told(&site, Verb::CheckFence, Some(lease)))),
    }
}

fn pass(
    db: &mut Db,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
    raise: bool,
) -> Result<Result<i64, Stale>, Failure> {
    let judge = |mark: &Option<Mark>| match mark {
        Some(Mark { highest: Some(highest), .. }) if fence < *highest => {
            Some(Err(Stale { presented: fence, highest: *highest }))
        }
        // Nothing to change: the usual write of a holder costs no commit.
        Some(Mark { highest, number }) if !raise || *highest == Some(fence) => Some(Ok(*number)),
        _ => None,
    };
    if let Some(known) = db.read(|conn, _, _| {
        check_issued(conn, resource, lease, fence)?;
        Ok(judge(&find(conn, resource, lease)?))
    })? {
        return Ok(known);
    }
    // The resource is written next: a mark that a loss of power took back would let an older fence in.
    db.write(Keep::ThroughPowerLoss, |tx, _, _| {
        check_issued(tx, resource, lease, fence)?;
        let mark = find(tx, resource, lease)?;
        if let Some(known) = judge(&mark) {
            return Ok(Verdict::Unchanged(known));
        }
        let highest = raise.then(|| number(fence.get()));
        tx.prepare_cached(
            "INSERT INTO gate (resource, lease, highest) VALUES (?1, ?2, ?3) \
             ON CONFLICT (resource, lease) DO UPDATE SET highest = ?3",
        )?
        .execute((resource.as_str(), lease.as_str(), highest))?;
        let number = match mark {
            Some(mark) => mark.number,
            None => tx.last_insert_rowid(),
        };
        Ok(Verdict::Changed(Ok(number)))
    })
}

/// Refuses a fence above every one that the lease was granted under: one absurd number would shut everyone out.
fn check_issued(
    conn: &Connection,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
) -> Result<(), Fault> {
    let issued = Row::find(conn, lease)?.map(|row| row.counter);
    if issued.is_some_and(|issued| fence <= issued) {
        return Ok(());
    }
    Err(Fault::Known(StoreErrorKind::NeverIssued { fence, highest: issued, resource: resource.clone() }))
}

fn find(conn: &Connection, resource: &ResourceName, lease: &LeaseName) -> Result<Option<Mark>, Fault> {
    let sql = "SELECT number, resource, highest FROM gate WHERE resource = ?1 AND lease = ?2";
    let mut select = conn.prepare_cached(sql)?;
    let parse = |row: &rusqlite::Row<'_>| {
        let fields = Fields::of(row, "gate", "resource");
        Ok(Mark { number: fields.number("number")?, highest: fields.maybe_fence("highest")? })
    };
    select.query_row((resource.as_str(), lease.as_str()), |row| Ok(parse(row))).optional()?.transpose()
}

/// The gates that this process waits at. Here waiters queue in order; between processes whoever comes first.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    // Weak, so that a gate nobody waits at costs nothing for long.
    queues: Mutex<HashMap<i64, Weak<QueueLock<()>>>>,
}

/// A gate, held: by a file lock against other processes, which falls with this process, and by a queue lock in it.
#[derive(Debug)]
pub(crate) struct HeldGate {
    // Dropped in this order: the next in the queue finds the file free.
    _file: File,
    _queue: OwnedMutexGuard<()>,
}

impl Doors {
    fn queue(&self, number: i64) -> Arc<QueueLock<()>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(&number).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::default();
        queues.insert(number, Arc::downgrade(&queue));
        queue
    }

    /// Waits for a gate. Dropping the future leaves the queue.
    pub(crate) async fn hold(&self, place: &Place, number: i64) -> Result<HeldGate, Fault> {
        let queue = self.queue(number).lock_owned().await;
        place.make_dir(&place.gates)?;
        let path = place.gates.join(number.to_string());
        let mut pause = Duration::from_millis(1);
        loop {
            // A lock is tried, never waited for: a thread that waits in the kernel could not be called off.
            let file = place.open_beside(&path)?;
            let id = file.metadata().as_ref().map(FileId::from).map_err(|cause| Fault::File {
                path: path.clone(),
                cause: std::io::Error::from(cause.kind()),
            })?;
            match file.try_lock() {
                // A file that was removed meanwhile keeps nobody out.
                Ok(()) if FileId::of(&path) == Some(id) => {
                    return Ok(HeldGate { _file: file, _queue: queue });
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(TryLockError::Error(cause)) => return Err(Fault::file(path)(cause)),
            }
        }
    }
}
