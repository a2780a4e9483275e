//! The embedded store of leasehold: leases for the processes of one host, in one SQLite file.
//!
//! ```no_run
//! # fn main() -> Result<(), leasehold_core::StoreError> {
//! let store = leasehold_sqlite::SqliteStore::open("sqlite:/var/lib/app/leases.db")?;
//! # Ok(()) }
//! ```
//!
//! What it promises and what not is in `docs/semantics/sqlite.md`.
//!
//! # Map
//! ```text
//! store ── SqliteStore: the traits of leasehold-core; asks two threads
//! ├─ thread    how async code asks a thread, and the one that writes
//! │  ├─ acquire, renew, release      the changes of a lease, one transaction each
//! │  ├─ roster, mail, gate           what else a store keeps
//! │  └─ standing ◄ row ◄ field       who holds a lease now ◄ a stored row, checked ◄ one checked value
//! ├─ watch     the thread that looks: reads, feeds, the safety poll
//! │  ├─ feeds, look                  what the watches are shown
//! │  └─ bell                         how processes wake each other
//! ├─ witness, sweep                  how the end of a process is seen
//! └─ site      what both threads share: place (the files), clock, boot, busy timeout
//!    ├─ db, open, schema.sql         a connection, its transactions, the layout
//!    └─ config, disk, diagnose, error
//! ```

mod acquire;
mod bell;
mod boot;
mod config;
mod db;
mod diagnose;
mod disk;
mod error;
mod feeds;
mod field;
mod gate;
mod look;
mod mail;
mod note;
mod open;
mod place;
mod release;
mod renew;
mod roster;
mod row;
mod site;
mod standing;
mod store;
mod sweep;
mod thread;
mod watch;
mod witness;

pub use boot::HostClock;
pub use config::{Config, MAX_PATIENCE, MIN_SAFETY_POLL};
pub use store::SqliteStore;
