//! A nightly run that writes one invoice for each customer, by one of two replicas.
//!
//! ```text
//!   A  holds (1) ── reads whom to bill ── bills, bills ──┐ frozen before the next        ┌─ fenced(1) ✗ stale: rolled back
//!   B  waits ────────────────────────────────expired─────└─ holds (2) ── bills the rest ─┘
//! ```
//! # Map
//! * [`replica`]: what each replica does: the part to copy. * [`scene`]: what is done to them, and what is expected.

pub mod replica;
pub mod scene;

/// The lease.
pub const LEASE: &str = "invoice-run";
/// What its fences protect.
pub const RESOURCE: &str = "invoices";

/// The tables. Nothing in them keeps a customer from being billed twice: only the fence does.
pub const TABLES: &str = "DROP SCHEMA IF EXISTS invoices_example CASCADE;
  CREATE SCHEMA invoices_example;
  CREATE TABLE invoices_example.customer (id bigint PRIMARY KEY);
  CREATE TABLE invoices_example.invoice (customer bigint NOT NULL, fence bigint NOT NULL)";
