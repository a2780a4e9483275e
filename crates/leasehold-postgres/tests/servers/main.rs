//! The store on real servers, and what servers and networks do to it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test panics by design, in its helpers too")]

mod answers;
mod common;
mod ears;
mod layout;
mod login;
mod pooled;
mod trouble;
mod witness;
