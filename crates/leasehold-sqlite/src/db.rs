//! The database, as one thread of a store has it: one connection, read and written in whole transactions.

use crate::{
    error::{Failure, Fault},
    open,
    place::FileId,
    site::Site,
};
use leasehold_core::Moment;
use rusqlite::{Connection, FileControl, Transaction, TransactionBehavior, config::DbConfig};
use std::sync::Arc;

/// One thread's connection. It is made anew when the file was removed or replaced.
#[derive(Debug)]
pub(crate) struct Db {
    pub(crate) site: Arc<Site>,
    open: Option<Open>,
    /// How often the file was opened. What was learnt of an earlier one is worth nothing.
    pub(crate) generation: u64,
}

#[derive(Debug)]
struct Open {
    conn: Connection,
    file: Option<FileId>,
    sync: Keep,
}

/// What a change must survive once it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// A loss of power: whatever moves a fence counter or a fence mark, or begins or ends a term.
    ThroughPowerLoss,
    /// The end of any process. A loss of power ends the boot, and with it whatever else is kept here: claims,
    /// rosters, letters.
    ThroughCrash,
}

/// What a transaction came to.
#[derive(Debug)]
pub(crate) enum Verdict<T> {
    /// Nothing to keep: it is rolled back.
    Unchanged(T),
    /// To be kept; nobody waits for it.
    Changed(T),
    /// To be kept, and watchers shall look.
    Turned(T),
}

impl Db {
    /// Opens the database, which is made if it is missing.
    pub(crate) fn open(site: Arc<Site>) -> Result<Self, Fault> {
        let mut db = Self { site, open: None, generation: 0 };
        db.conn()?;
        Ok(db)
    }

    /// One consistent look. The moment is read before the snapshot is taken, so nothing seen is older than it.
    pub(crate) fn read<T>(
        &mut self,
        look: impl FnOnce(&Connection, &Site, Moment) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let site = self.site.clone();
        let open = self.conn()?;
        let tx = open.conn.transaction()?;
        look(&tx, &site, site.now())
    }

    /// One atomic change. The moment is read with the write lock in hand, so it never runs backwards from one change
    /// to the next.
    pub(crate) fn write<T>(
        &mut self,
        keep: Keep,
        change: impl FnOnce(&Transaction<'_>, &Site, Moment) -> Result<Verdict<T>, Fault>,
    ) -> Result<T, Failure> {
        let site = self.site.clone();
        let open = self.conn()?;
        open.keep(keep)?;
        let tx = open.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (answer, turned) = match change(&tx, &site, site.now())? {
            Verdict::Unchanged(answer) => return Ok(answer),
            Verdict::Changed(answer) => (answer, false),
            Verdict::Turned(answer) => (answer, true),
        };
        // From here on a failure may come after the change reached the log.
        tx.commit().map_err(|cause| Failure { fault: cause.into(), perhaps_done: true })?;
        if turned {
            site.bell.ring(&site.place);
        }
        Ok(answer)
    }

    /// Gives the connection up; the next use makes a new one.
    pub(crate) fn reset(&mut self) {
        self.open = None;
    }

    fn conn(&mut self) -> Result<&mut Open, Fault> {
        // SQLite goes on working on a file that was removed, and would grant leases that nobody else sees.
        if let Some(open) = &self.open
            && open.file != FileId::of(&self.site.place.db)
        {
            tracing::warn!(store = %self.site.address, "the store's file was removed or replaced; opening it anew");
            self.open = None;
        }
        match &mut self.open {
            Some(open) => Ok(open),
            vacant => {
                let conn = open::connect(&self.site)?;
                let file = FileId::of(&self.site.place.db);
                self.generation += 1;
                Ok(vacant.insert(Open { conn, file, sync: Keep::ThroughPowerLoss }))
            }
        }
    }
}

impl Open {
    fn keep(&mut self, keep: Keep) -> Result<(), Fault> {
        if self.sync != keep {
            self.conn.execute_batch(match keep {
                Keep::ThroughPowerLoss => "PRAGMA synchronous = FULL",
                Keep::ThroughCrash => "PRAGMA synchronous = NORMAL",
            })?;
            self.sync = keep;
        }
        Ok(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut moved: std::ffi::c_int = 0;
        let asked = self.conn.file_control(Some("main"), FileControl::HasMoved(&mut moved));
        if asked.is_ok() && moved != 0 {
            // The last connection to a file removes its log by name, and the name may belong to a new database now.
            drop(self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
        }
    }
}
