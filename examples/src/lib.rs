//! The parts of the examples; the programs themselves are one short file each, beside this folder.
//!
//! * [`fanout`]: one leader reads a feed and fans it out to all replicas; it is killed, and another is frozen past
//!   its lease, and no client sees more of it than a short wait.
//! * [`paused_holder`]: the smallest case for fences: a holder sleeps through its lease, wakes, and writes.
//! * [`shared_cache`]: one replica refreshes a cache in Redis; a late refresh is refused in the same step that would write it.
//! * [`job_queue`]: workers claim rows of a table in PostgreSQL; one is killed, one paused, and no job is lost or done twice.
//! * [`invoices`]: a nightly run in PostgreSQL; its fence is checked in the transaction of each invoice.
//! * [`clock`], [`process`], [`cast`], [`hold`], [`store`], [`database`]: what several need.

pub mod cast;
pub mod clock;
pub mod database;
pub mod fanout;
pub mod hold;
pub mod invoices;
pub mod job_queue;
pub mod paused_holder;
pub mod process;
pub mod shared_cache;
pub mod store;
