//! Locks and fenced writes in the user's own database, on real servers.

mod claims;
mod exclusive;
mod fenced;
mod interrupted;
mod pooled;
mod session;
mod support;
