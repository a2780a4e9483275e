//! The store over real servers: how it reaches them, what it does when they fail, what it leaves on them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test panics by design, in its helpers too")]

mod cluster;
mod common;
mod counters;
mod deployments;
mod doctor;
mod fenced;
mod gates;
mod hearing;
mod leases;
mod limits;
mod model;
mod partial;
mod repeats;
mod replicas;
mod rosters;
mod trouble;
mod wire;
