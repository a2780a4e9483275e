//! The schema of a store: its text, and bringing a database to it.

use crate::{
    config::{Config, Schema},
    error::{Failure, Fault, not_laid_out},
    link::{connect, drive},
    texts::{EARS, channel, ears},
};
use leasehold_core::{StoreError, StoreErrorKind, Verb};
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use tokio_postgres::{Client, error::SqlState};

/// What brings a database from each version to the next.
const STEPS: [&str; 1] = [concat!(
    include_str!("layout/tables.sql"),
    "
",
    include_str!("layout/standing.sql"),
    "
",
    include_str!("layout/leases.sql"),
    "
",
    include_str!("layout/beside.sql"),
    "
",
    include_str!("layout/fenced.sql"),
    "
",
    include_str!("layout/rights.sql"),
)];

/// The version of the layout that this program knows.
pub const LAYOUT_VERSION: i32 = STEPS.len() as i32;

/// The statements that lay out an empty database, for whoever may run them, as they stand. Run it in one transaction, such
/// as `psql --single-transaction`.
#[must_use]
pub fn layout_sql(schema: &Schema) -> String {
    let mut text = format!("CREATE SCHEMA {};\n\n", schema.quoted());
    for step in STEPS {
        text += &written(step, schema);
    }
    text
}

/// The statements that let a role use a store, and do nothing else: no right to a table.
///
/// # Errors
/// [`StoreErrorKind::Config`] for a role that no identifier can be: empty, above 63 bytes, or with a NUL.
pub fn grants_sql(schema: &Schema, role: &str) -> Result<String, StoreErrorKind> {
    if role.is_empty() || role.len() > 63 || role.contains('\0') {
        return Err(StoreErrorKind::Config("a role has 1 to 63 bytes and no NUL".into()));
    }
    let (schema, role) = (schema.quoted(), format!("\"{}\"", role.replace('"', "\"\"")));
    Ok(format!(
        "GRANT USAGE ON SCHEMA {schema} TO {role};\nGRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role};\n"
    ))
}

fn written(step: &str, schema: &Schema) -> String {
    step.replace("@schema@", &schema.quoted())
        .replace("@plain@", schema.as_str())
        .replace("@all@", &channel(schema, "all", ""))
        .replace("@ears@", &format!("'{}'", ears(schema)))
        .replace("@ears_count@", &EARS.to_string())
}

/// Lays out the schema in the database of an address, or brings an older layout to the one that this program knows. Done
/// already is no error. Any number of replicas may do it at once.
///
/// It needs the right to create a schema in the database the first time, and afterwards to be its owner. What it makes
/// runs with the rights of that owner: see [`grants_sql`] for everybody else.
///
/// # Errors
/// By kind: no connection (`Unreachable`, `TimedOut`), no right (`Denied`), something else of that name (`Foreign`), or a
/// layout of a newer program (`NewerSchema`).
pub async fn migrate(config: &Config) -> Result<(), StoreError> {
    migrated(config).await.map_err(|failure| failure.fault.told(&config.address(), Verb::Connect, None))
}

pub(crate) async fn migrated(config: &Config) -> Result<(), Failure> {
    let (client, connection) = connect(config).await?;
    let serving = tokio::spawn(drive(connection));
    let done = laid_out(&client, &config.schema).await;
    drop(client);
    serving.await.ok();
    done
}

async fn laid_out(client: &Client, schema: &Schema) -> Result<(), Failure> {
    let step = async || -> Result<(), Failure> {
        // One at a time. The lock ends with the transaction, whatever happens.
        let [a, b, c, d, e, f, g, h, ..] = Sha256::digest(format!("leasehold layout {schema}"))[..] else {
            return Err(StoreErrorKind::Other.into());
        };
        let key = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
        client.batch_execute(&format!("SELECT pg_advisory_xact_lock({key})")).await?;
        match version(client, schema).await? {
            Found::Nothing => client.batch_execute(&layout_sql(schema)).await?,
            Found::Empty => {
                let text: String = STEPS.iter().map(|step| written(step, schema)).collect();
                client.batch_execute(&text).await?;
            }
            Found::Version(LAYOUT_VERSION) => {}
            Found::Version(found) => check(found)?,
            Found::Foreign => {
                return Err(StoreErrorKind::Foreign {
                    found: format!("schema {schema} holds other things").into(),
                }
                .into());
            }
        }
        Ok(())
    };
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    match step().await {
        Ok(()) => Ok(client.batch_execute("COMMIT").await?),
        Err(failure) => {
            client.batch_execute("ROLLBACK").await.ok();
            Err(failure)
        }
    }
}

/// Whether this program knows the version of a layout.
pub(crate) fn check(found: i32) -> Result<(), StoreErrorKind> {
    match found.cmp(&LAYOUT_VERSION) {
        Ordering::Equal => Ok(()),
        Ordering::Less => Err(not_laid_out()),
        Ordering::Greater => {
            Err(StoreErrorKind::NewerSchema { found: found.into(), known: LAYOUT_VERSION.into() })
        }
    }
}

/// What is there before the layout.
enum Found {
    Nothing,
    /// A schema that somebody made for us.
    Empty,
    Version(i32),
    Foreign,
}

async fn version(client: &Client, schema: &Schema) -> Result<Found, Failure> {
    let sql = "SELECT count(c.oid) AS objects, bool_or(c.relname = 'layout') AS is_ours FROM pg_namespace n \
               LEFT JOIN pg_class c ON c.relnamespace = n.oid WHERE n.nspname = $1 GROUP BY n.oid";
    let rows = client.query_typed(sql, &[(&schema.as_str(), tokio_postgres::types::Type::NAME)]).await?;
    let Some(row) = rows.first() else { return Ok(Found::Nothing) };
    let (objects, is_ours): (i64, Option<bool>) = (row.get("objects"), row.get("is_ours"));
    if objects == 0 {
        return Ok(Found::Empty);
    }
    if is_ours != Some(true) {
        return Ok(Found::Foreign);
    }
    let text = format!("SELECT version FROM {}.layout", schema.quoted());
    match client.query_typed_one(&text, &[]).await {
        Ok(row) => Ok(Found::Version(row.try_get(0).map_err(Fault::from)?)),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => Ok(Found::Foreign),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_text_names_the_schema_and_leaves_nothing_open() {
        let schema = Schema::new("jobs").unwrap();
        let text = layout_sql(&schema);
        assert!(text.starts_with("CREATE SCHEMA \"jobs\";"));
        assert!(!text.contains('@'), "a placeholder is left");
        assert!(!text.contains("leasehold\""), "another schema is named");
    }

    #[test]
    fn a_role_is_quoted() {
        let schema = Schema::default();
        assert!(grants_sql(&schema, "a\"b; DROP").unwrap().contains("TO \"a\"\"b; DROP\";"));
        assert!(grants_sql(&schema, "").is_err());
    }
}
