//! Leases and locks on PostgreSQL, beside the statements that one would write by hand.

mod exclusive;
mod pairs;
mod renewals;

use crate::table::Table;
use tokio_postgres::{Client, NoTls};

#[tokio::main]
pub(crate) async fn run(table: &mut Table) -> anyhow::Result<()> {
    pairs::run(table).await?;
    exclusive::run(table).await?;
    renewals::run(table).await
}

/// A connection for a yardstick.
async fn client(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    drop(tokio::spawn(connection));
    Ok(client)
}
