//! The program from outside: the built binary, real processes, real signals, real terminals.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a failed step fails the test, and nobody else sees this"
)]

mod ending;
mod environment;
mod events;
mod handoff;
mod launch;
mod losing;
mod parent_death;
mod paused;
mod postgres;
mod pty;
mod redis;
mod secrets;
mod signals;
mod statuses;
mod streams;
mod terminal;
mod usage;
mod verbs;
