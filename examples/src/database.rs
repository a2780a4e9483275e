//! A PostgreSQL database that an example plays in.

use leasehold::BoxError;
use tokio_postgres::{Client, NoTls};

/// Connects. These examples go to a database nearby, so without TLS; a service would take a pool, and rustls.
///
/// # Errors
/// If there is no server, or if it lets nobody in.
pub async fn connect(url: &str) -> Result<Client, BoxError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .map_err(|error| format!("no database there: {}", crate::database::told(&error)))?;
    // The client's calls tell of its end.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// What the server or the connection said: a driver's error shows its kind only.
#[must_use]
pub fn told(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => db.message().to_owned(),
        None => std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string),
    }
}
