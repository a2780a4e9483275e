//! Leases of leasehold in PostgreSQL, and locks in the user's own database.
//!
//! ```no_run
//! # async fn open() -> Result<(), leasehold_core::StoreError> {
//! let config = leasehold_postgres::Config::parse("postgres://app@db.example/app?sslmode=verify-full")
//!     .map_err(|kind| leasehold_core::StoreError::new(kind, leasehold_core::Verb::Connect, "postgres"))?;
//! leasehold_postgres::migrate(&config).await?;
//! let store = leasehold_postgres::PostgresStore::with(&config).await?;
//! # Ok(()) }
//! ```
//!
//! # Addresses
//! `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETERS`, with the parameters and the `PG…` variables that
//! PostgreSQL's own clients know, and `schema`, `connections`, `response_timeout`, `witness_poll`, `migrate`,
//! `password_env` and `password_file`. All are in `docs/semantics/postgres.md`.
//!
//! What it promises and what not is in `docs/semantics/postgres.md`.
//!
//! # Map
//! ```text
//! store ── PostgresStore: the traits of leasehold-core; asks one link
//! ├─ acquire, renew, release, look    what is asked about a lease, each one call of a function (layout/*.sql)
//! │  └─ fields                        the columns of an answer, read strictly
//! ├─ roster, mail, gate               what else a store keeps
//! ├─ watch, witness ─ hearing         what is heard: one connection a process
//! ├─ diagnose                         what in the server's settings endangers leases
//! ├─ layout                           the schema, and bringing a database to it
//! └─ link                             asks the server that is in charge now; heals itself
//!    ├─ texts                         constant statements; names of channels
//!    └─ config, error
//!
//! in the user's own database, and on the user's own connections
//! ├─ exclusive                        a lock for one transaction
//! ├─ session                          a lock for a session of its own
//! ├─ claims                           rows that are a worker's for a while
//! ├─ fenced                           writes behind a fence, in the transaction that makes them
//! └─ key, identifier                  numbers of locks; names of tables and columns
//! ```

mod acquire;
mod claims;
mod config;
mod diagnose;
mod error;
mod exclusive;
mod fenced;
mod fields;
mod gate;
mod hearing;
mod identifier;
mod key;
mod layout;
mod link;
mod look;
mod mail;
mod pinned;
mod release;
mod renew;
mod roster;
mod session;
mod store;
mod texts;
mod wire;
mod witness;

pub use claims::{ClaimError, ClaimTable, MAX_CLAIM_TTL, Renewed, RowClaim, RowKey};
pub use config::{Config, MAX_CONNECTIONS, MAX_PATIENCE, Schema};
pub use exclusive::{DEFAULT_WAIT, Interrupt, LockError, MAX_WAIT, TransactionLock, exclusive, shared};
pub use fenced::{FenceColumn, FenceTrigger, FencedError, Mark, fenced, present};
pub use identifier::{Identifier, IdentifierError, TableName};
pub use key::Key;
pub use layout::{LAYOUT_VERSION, grants_sql, layout_sql, migrate};
pub use session::{MAX_SILENCE, MIN_SILENCE, NotLocked, SessionLock, SessionLost, WantedLock};
pub use store::PostgresStore;
