//! A queue of jobs in a table: workers claim rows for a while, and finish each in the transaction of its result.
//!
//! ```text
//!   job  id  claim_fence  claimed_by  claimed_until  done_at
//!         7            1  A (killed)     03:00:02     │
//!         7            2  B              03:00:05     │ 03:00:03   the claim expired, and B finished it under the next fence
//! ```
//! # Map
//! * [`worker`]: what each worker does: the part to copy. * [`scene`]: what is done to the workers, and what is expected.

pub mod scene;
pub mod worker;

use leasehold_postgres::{ClaimTable, Identifier, IdentifierError, TableName};

/// The tables. Nothing in them keeps a job from being done twice: only the claims do.
pub const TABLES: &str = "DROP SCHEMA IF EXISTS job_queue_example CASCADE;
  CREATE SCHEMA job_queue_example;
  CREATE TABLE job_queue_example.job (id bigserial PRIMARY KEY, done_at timestamptz);
  CREATE TABLE job_queue_example.result (job bigint NOT NULL, worker text NOT NULL, fence bigint NOT NULL)";

/// The jobs, as they are claimed.
///
/// # Errors
/// Never, as the names are good ones.
pub fn jobs() -> Result<ClaimTable<i64>, IdentifierError> {
    Ok(ClaimTable::new(TableName::new("job_queue_example.job")?, Identifier::new("id")?)
        .ready("done_at IS NULL")
        .order("id")
        .done("done_at = clock_timestamp()"))
}
