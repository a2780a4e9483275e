//! Leases of leasehold in Redis and Valkey: one server, Sentinel or Cluster.
//!
//! ```no_run
//! # async fn open() -> Result<(), leasehold_core::StoreError> {
//! let store = leasehold_redis::RedisStore::open("redis://127.0.0.1/0").await?;
//! # Ok(()) }
//! ```
//!
//! # Addresses
//! `redis://` and `rediss://` for one server, `redis+unix://` for its socket, `redis+sentinel://` and `rediss+sentinel://`
//! for whichever the sentinels name, `redis+cluster://` and `rediss+cluster://` for a Cluster. Their parameters are in
//! `docs/semantics/redis.md`.
//!
//! What it promises and what not is in `docs/semantics/redis.md`.
//!
//! # Map
//! ```text
//! store ── RedisStore: the traits of leasehold-core; asks one link
//! ├─ acquire, undo, renew, release, look   what is asked about a lease, each one script (scripts/*.lua)
//! │  └─ record                        a lease as it stands in Redis, written and read
//! ├─ roster, mail, gate               what else a store keeps
//! ├─ watch, witness ─ hearing         what is heard: one subscription connection a process
//! ├─ fenced                           writes of users behind a fence, one script each
//! ├─ diagnose                         what in the server's settings endangers leases
//! └─ link                             asks the server that is in charge now; heals itself
//!    ├─ script, keys                  one constant script; names of keys and channels
//!    └─ config, error
//! ```

mod acquire;
mod config;
mod diagnose;
mod error;
mod fenced;
mod gate;
mod hearing;
mod keys;
mod link;
mod look;
mod mail;
mod record;
mod release;
mod renew;
mod reply;
mod roster;
mod script;
mod store;
mod undo;
mod witness;

pub use config::{Config, MAX_PATIENCE, MAX_PREFIX_BYTES};
pub use fenced::{Fenced, FencedError, FencedScript};
pub use store::RedisStore;
