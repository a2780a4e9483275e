//! Locks and fenced writes in the user's own database, on real servers.

// Used by the library, or by other tests of this crate.
#![allow(unused_crate_dependencies)]

mod claims;
mod exclusive;
mod fenced;
mod interrupted;
mod pooled;
mod session;
mod support;
