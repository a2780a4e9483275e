//! One of three replicas refreshes a cache in Redis that all of them read.
//!
//! ```text
//!   replicas ── election "shared-cache" ──► one leads ── Fenced::set(fence, …) ──► {prices}:all
//!   reader   ◄── looks every few milliseconds: versions only grow ──────────────────┘
//! ```
//! # Map
//! * [`server`]: a Redis server of the example's own. * [`replica`]: what each replica does: the part to copy.
//! * [`reader`]: who checks it. * [`scene`]: what is done to the leaders, and what is expected.

pub mod reader;
pub mod replica;
pub mod scene;
pub mod server;

/// The lease.
pub const LEASE: &str = "shared-cache";
/// Where the cache is. Its mark has the same hash tag, so that a Cluster keeps them together.
pub const CACHE: &str = "{prices}:all";
/// The highest fence that has written it.
pub const MARK: &str = "{prices}:fence";
