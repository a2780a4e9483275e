//! What only a file on a disk can suffer, and what only real processes can show.
// The processes of these tests are watched through /proc, namespaces and pidfds.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test panics by design, in its helpers too")]

mod boot;
mod cancel;
mod crowd;
mod damage;
mod disk;
mod foreign;
mod gates;
mod lifetime;
mod modes;
mod names;
mod parts;
mod support;
mod takeover;
mod waking;
