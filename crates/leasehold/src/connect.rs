//! Opening a store by its address.

use leasehold_core::{MemoryStore, SharedStore, StoreError, StoreErrorKind, Verb};
use std::sync::Arc;

/// Opens the store at `url`:
///
/// * `memory:`: a fresh store in this process, for tests and single-process programs.
/// * `sqlite:PATH`: a file shared by the processes of one host; made, with its directory, if it is missing. Feature
///   `sqlite`, on by default.
/// * `redis://…`, `rediss://…`, `redis+unix://…`, `redis+sentinel://…`, `redis+cluster://…`: servers shared by many hosts;
///   see the crate `leasehold-redis`. Feature `redis`.
/// * `postgres://…`: a PostgreSQL database shared by many hosts; see the crate `leasehold-postgres`. Feature `postgres`.
///
/// # Errors
/// [`StoreError`], of the kind `Config` for an address that no compiled-in store understands. No error shows a
/// password that the address may hold.
pub async fn connect(url: &str) -> Result<SharedStore, StoreError> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        "memory" => Ok(Arc::new(MemoryStore::default())),
        #[cfg(feature = "sqlite")]
        "sqlite" => sqlite(url).await,
        #[cfg(feature = "redis")]
        _ if leasehold_redis::Config::SCHEMES.contains(&scheme) => {
            Ok(Arc::new(leasehold_redis::RedisStore::open(url).await?))
        }
        #[cfg(feature = "postgres")]
        _ if leasehold_postgres::Config::SCHEMES.contains(&scheme) => {
            Ok(Arc::new(leasehold_postgres::PostgresStore::open(url).await?))
        }
        _ => {
            let known = [
                Some("memory:"),
                cfg!(feature = "sqlite").then_some("sqlite:PATH"),
                cfg!(feature = "redis").then_some("redis://HOST:PORT/DB"),
                cfg!(feature = "postgres").then_some("postgres://HOST:PORT/DATABASE"),
            ];
            let known = known.into_iter().flatten().collect::<Vec<_>>().join(", ");
            let problem = format!("the scheme `{scheme}:` is not known to this program; it knows {known}");
            Err(StoreError::new(StoreErrorKind::Config(problem.into()), Verb::Connect, format!("{scheme}:…")))
        }
    }
}

#[cfg(feature = "sqlite")]
async fn sqlite(url: &str) -> Result<SharedStore, StoreError> {
    // Opening waits for the disk, and perhaps for another process's lock.
    let address = url.to_owned();
    match tokio::task::spawn_blocking(move || leasehold_sqlite::SqliteStore::open(&address)).await {
        Ok(opened) => Ok(Arc::new(opened?)),
        Err(error) => Err(StoreError::new(StoreErrorKind::Other, Verb::Connect, "sqlite").because(error)),
    }
}
