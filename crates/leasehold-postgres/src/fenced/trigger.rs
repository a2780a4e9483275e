//! A table that takes writes only under a fence, whoever writes.

use super::{FencedError, number};
use crate::{config::Schema, identifier::TableName};
use leasehold_core::{Fence, LeaseName, ResourceName};
use std::fmt;
use tokio_postgres::{GenericClient, types::Type};

/// A trigger that has a table check the fence of every write: for tables that are written by an object mapper, by another
/// service, or by hand.
///
/// Each INSERT, UPDATE, DELETE and TRUNCATE then accepts the fence that its transaction has [presented](present), or fails;
/// without one there is no write. Its owner and superusers can disable it, as any trigger, and it does not fire in sessions
/// with `session_replication_role = replica`.
///
/// ```
/// use leasehold_postgres::FenceTrigger;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let trigger = FenceTrigger::new("billing.invoice".try_into()?, "invoices".try_into()?, "invoice-run".try_into()?);
/// println!("{trigger};"); // for whoever runs the migrations
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FenceTrigger {
    table: TableName,
    schema: String,
    resource: ResourceName,
    lease: LeaseName,
}

impl FenceTrigger {
    /// Guards `table` by the mark of `resource` for the terms of `lease`, in the schema `leasehold` of the same database.
    #[must_use]
    pub fn new(table: TableName, resource: ResourceName, lease: LeaseName) -> Self {
        Self { table, schema: Schema::default().quoted(), resource, lease }
    }

    /// With marks in another schema.
    #[must_use]
    pub fn in_schema(mut self, schema: &Schema) -> Self {
        self.schema = schema.quoted();
        self
    }

    /// Makes the trigger, or makes it anew.
    ///
    /// # Errors
    /// [`FencedError`] with what the server said; it needs the TRIGGER right on the table, and the schema of the marks.
    pub async fn install<C: GenericClient + Sync>(&self, client: &C) -> Result<(), FencedError> {
        client.batch_execute(&self.to_string()).await.map_err(FencedError::from)
    }
}

/// The statement that makes the trigger.
impl fmt::Display for FenceTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, schema, resource, lease } = self;
        write!(
            f,
            "CREATE OR REPLACE TRIGGER leasehold_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} \
             FOR EACH STATEMENT EXECUTE FUNCTION {schema}.guard({}, {})",
            literal(resource.as_str()),
            literal(lease.as_str())
        )
    }
}

/// A trigger's arguments cannot be parameters. An escape string means the same under every setting of the server.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', r"\\").replace('\'', "''"))
}

/// Presents a fence to the guarded tables that this transaction is going to write. It ends with the transaction.
///
/// In SQL, for programs in other languages: `SELECT set_config('leasehold.fence', '7', true)`.
///
/// # Errors
/// What the server said.
pub async fn present<C: GenericClient + Sync>(tx: &C, fence: Fence) -> Result<(), FencedError> {
    let fence = number(fence).to_string();
    let set = "SELECT set_config('leasehold.fence', $1, true)";
    tx.query_typed(set, &[(&fence, Type::TEXT)]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        let name = r"it's \' a name";
        let trigger = FenceTrigger::new(
            TableName::new("t").unwrap(),
            ResourceName::new(name).unwrap(),
            LeaseName::new("l").unwrap(),
        );
        assert!(
            trigger.to_string().ends_with(r#""leasehold".guard(E'it''s \\'' a name', E'l')"#),
            "{trigger}"
        );
    }
}
