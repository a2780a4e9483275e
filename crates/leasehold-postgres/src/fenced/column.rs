//! A fence in each row of the user's own table.

use super::{FencedError, number};
use crate::identifier::{Identifier, TableName};
use leasehold_core::{Fence, Stale};
use tokio_postgres::{
    GenericClient,
    types::{ToSql, Type},
};

/// A column of the user's own table that remembers, for each row, the highest fence that wrote it.
///
/// For rows that belong to different leases (one tenant's, one shard's), where a mark each would be one more table to keep.
/// The column is a `bigint`, and NULL until a fence was accepted:
///
/// ```sql
/// ALTER TABLE shard ADD COLUMN fence bigint CHECK (fence BETWEEN 1 AND 9007199254740991);
/// ```
#[derive(Debug, Clone)]
pub struct FenceColumn {
    table: String,
    raise: String,
    look: String,
}

impl FenceColumn {
    /// The column `fence` of `table`, whose rows are told apart by the column `key`.
    #[must_use]
    pub fn new(table: &TableName, key: &Identifier, fence: &Identifier) -> Self {
        Self {
            // One statement, which takes the row's lock and compares what it finds then.
            raise: format!(
                "UPDATE {table} SET {fence} = $2 WHERE {key} = $1 AND ({fence} IS NULL OR {fence} <= $2)"
            ),
            look: format!("SELECT {fence} FROM {table} WHERE {key} = $1"),
            table: table.to_string(),
        }
    }

    /// The statement that accepts a fence: `$1` is the key, `$2` the fence. It changes one row, or none if it is stale.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.raise
    }

    /// Accepts `fence` for one row and remembers it in the row, or fails, in the user's transaction and before its writes.
    /// Until the transaction ends nobody else gets a fence accepted for this row.
    ///
    /// `key_type` is the type of the key's column, as [`Type::INT8`].
    ///
    /// # Errors
    /// [`FencedError`]: stale, no such row, or what the server said. Unlike the mark's, this refusal does not abort the
    /// transaction on the server: roll it back.
    pub async fn accept<C, K>(&self, tx: &C, key: &K, key_type: Type, fence: Fence) -> Result<(), FencedError>
    where
        C: GenericClient + Sync,
        K: ToSql + Sync,
    {
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(key, key_type.clone()), (&number(fence), Type::INT8)];
        if tx.execute_typed(&self.raise, &params).await? == 1 {
            return Ok(());
        }
        let found = tx.query_typed(&self.look, &[(key, key_type)]).await?;
        let Some(row) = found.first() else { return Err(FencedError::NoRow { table: self.table.clone() }) };
        let highest: Option<i64> = row.try_get(0)?;
        // It can have become NULL since the UPDATE only by somebody who keeps no rules.
        let found = highest.unwrap_or_default();
        match u64::try_from(found).ok().and_then(|number| Fence::new(number).ok()) {
            Some(highest) => Err(Stale { presented: fence, highest }.into()),
            None => Err(FencedError::Damaged { table: self.table.clone(), found }),
        }
    }
}
