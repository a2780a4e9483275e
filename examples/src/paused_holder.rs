//! The smallest case for fences: a holder sleeps through its lease, wakes, and writes.
//!
//! ```text
//!   A  ──holds (1)──looks──┐ paused 400 ms             ┌──writes (1)──✗ refused──releases──✗ not its own any more
//!   lease            300 ms └────────expires┐           │
//!   B  ──waits──────────────────────────────holds (2)──writes─────────────────────────────────still holds──
//! ```
//! # Map
//! * [`document`]: what is written to; it checks fences. * [`holder`]: the processes A and B.
//! * [`said`]: what they say. * [`scene`]: what the parent does to them, and what it expects.

pub mod document;
pub mod holder;
pub mod said;
pub mod scene;
