//! The parts of the examples; the programs themselves are one short file each, beside this folder.
//!
//! * [`fanout`]: one leader reads a feed and fans it out to all replicas; it is killed, and another is frozen past
//!   its lease, and no client sees more of it than a short wait.
//! * [`paused_holder`]: the smallest case for fences: a holder sleeps through its lease, wakes, and writes.
//! * [`shared_cache`]: one replica refreshes a cache in Redis; a late refresh is refused in the same step that would write it.
//! * [`clock`], [`process`], [`hold`], [`store`]: what both need.

pub mod clock;
pub mod fanout;
pub mod hold;
pub mod paused_holder;
pub mod process;
pub mod shared_cache;
pub mod store;
