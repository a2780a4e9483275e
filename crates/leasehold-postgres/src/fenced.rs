//! Writes behind a fence, in the transaction that makes them.
//!
//! ```text
//!  old holder, token 7   BEGIN ── fenced(7) ✓ ── UPDATE … ── COMMIT
//!  new holder, token 8               BEGIN ── fenced(8) waits ─────┴─✓ ── UPDATE … ── COMMIT
//!  old holder, token 7                                                      BEGIN ── fenced(7) ✗ stale, nothing is written
//! ```
//! The check comes first in the transaction, and holds the resource's mark until its end. The lease itself may be kept in any
//! store.

mod column;
mod error;
mod trigger;

pub use column::FenceColumn;
pub use error::FencedError;
pub use trigger::{FenceTrigger, present};

use crate::config::Schema;
use leasehold_core::{Fence, LeaseName, ResourceName};
use tokio_postgres::{GenericClient, types::Type};

/// Accepts `fence` for `resource` and remembers it, or fails: as [`Mark::accept`] of a mark in the schema `leasehold`.
///
/// ```no_run
/// # async fn write(client: &mut tokio_postgres::Client, fence: leasehold_core::Fence) -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold_postgres::fenced;
///
/// let tx = client.transaction().await?;
/// fenced(&tx, &"invoices".try_into()?, &"invoice-run".try_into()?, fence).await?;
/// tx.execute("INSERT INTO invoice (customer, month) VALUES (7, '2026-05-01')", &[]).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Mark::accept`].
pub async fn fenced<C>(
    tx: &C,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
) -> Result<(), FencedError>
where
    C: GenericClient + Sync,
{
    accept(tx, &Schema::default().quoted(), resource, lease, fence, None).await
}

/// The highest fence of a lease that a resource has accepted, kept in the same database as the resource.
///
/// A resource is whatever the marks of it protect: a table, some of its rows, several tables. Fences of two leases have no
/// common order, so each lease has a mark of its own at a resource.
#[derive(Debug, Clone)]
pub struct Mark {
    schema: Schema,
    resource: ResourceName,
    lease: LeaseName,
    max_jump: Option<u64>,
}

impl Mark {
    /// The mark of `resource` for the terms of `lease`, in the schema `leasehold`.
    #[must_use]
    pub fn new(resource: ResourceName, lease: LeaseName) -> Self {
        Self { schema: Schema::default(), resource, lease, max_jump: None }
    }

    /// In another schema.
    #[must_use]
    pub fn in_schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// Refuses a fence that is more than `jump` above the highest accepted, so that one damaged number does not shut
    /// everyone out. The first fence may be any.
    #[must_use]
    pub const fn max_jump(mut self, jump: u64) -> Self {
        self.max_jump = Some(jump);
        self
    }

    /// Accepts `fence` and remembers it, or fails, in the user's transaction and before its writes.
    ///
    /// # What is guaranteed
    /// * Invariant I1: what commits after this was accepted was accepted under no lower fence than anything that committed before.
    ///   Until the transaction ends, a transaction with a higher fence waits here; those with the same fence do not.
    /// * A refusal is an error of the server: the transaction is aborted, and cannot be committed by oversight.
    /// * It holds at every isolation level. From `REPEATABLE READ` on, a mark that was raised since the transaction's
    ///   snapshot is [`FencedError::Contended`]; the transaction made anew is told that it is stale.
    ///
    /// # What is not
    /// Outside a transaction (on a plain client) the mark is raised, and the next statement is on its own. Writes before the
    /// call, in the same transaction, are covered too, but did their work for nothing if it fails.
    ///
    /// # Errors
    /// [`FencedError`]: stale, too far above the mark, or what the server said. The transaction can only be rolled back.
    pub async fn accept<C>(&self, tx: &C, fence: Fence) -> Result<(), FencedError>
    where
        C: GenericClient + Sync,
    {
        let Self { schema, resource, lease, max_jump } = self;
        accept(tx, &schema.quoted(), resource, lease, fence, *max_jump).await
    }
}

async fn accept<C>(
    tx: &C,
    schema: &str,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
    max_jump: Option<u64>,
) -> Result<(), FencedError>
where
    C: GenericClient + Sync,
{
    let max_jump = max_jump.map(|jump| i64::try_from(jump).unwrap_or(i64::MAX));
    // Types are named, so that nothing is prepared: a pooler may give the next statement to another session.
    tx.query_typed(
        &format!("SELECT {schema}.fenced($1, $2, $3, $4)"),
        &[
            (&resource.as_str(), Type::TEXT),
            (&lease.as_str(), Type::TEXT),
            (&number(fence), Type::INT8),
            (&max_jump, Type::INT8),
        ],
    )
    .await
    .map(drop)
    .map_err(FencedError::from)
}

/// As the server keeps it.
pub(crate) fn number(fence: Fence) -> i64 {
    // At most 2^53 - 1.
    fence.get().cast_signed()
}
