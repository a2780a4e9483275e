//! Where a store is and how patient it is, from an address or from code.

mod address;
mod schema;
mod secret;
mod tls;

pub use schema::Schema;
pub(crate) use secret::Secret;
pub(crate) use tls::{Authority, Identity, Tls, Trust};

use leasehold_core::StoreErrorKind;
use std::{fmt, path::Path, sync::Arc, time::Duration};
use tokio_postgres::config::Host;

/// The longest time to connect, or to wait for an answer.
pub const MAX_PATIENCE: Duration = Duration::from_secs(60);
/// The most connections that a runtime may have to a store.
pub const MAX_CONNECTIONS: usize = 64;

/// The settings of a store.
#[derive(Clone)]
pub struct Config {
    /// Hosts, login, database and what else the client knows. Holds the password.
    pub(crate) server: tokio_postgres::Config,
    pub(crate) tls: Tls,
    pub(crate) schema: Schema,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) connections: usize,
    pub(crate) witness_poll: Duration,
    pub(crate) migrates: bool,
}

impl Config {
    /// The schemes of the addresses that [`Self::parse`] reads.
    pub const SCHEMES: &[&str] = &["postgres", "postgresql"];

    /// Reads an address; see [the crate](crate#addresses). What it leaves open is taken from the environment (`PGHOST`,
    /// `PGUSER`, `PGPASSWORD`, …) as other clients of PostgreSQL do.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] for another scheme, an unknown parameter, a value out of its range, and a file or
    /// variable that is named and cannot be read. No error shows a password.
    pub fn parse(address: &str) -> Result<Self, StoreErrorKind> {
        address::parse(address, &|name| std::env::var(name).ok())
    }

    /// Another schema. Default `leasehold`. Stores in different schemas share nothing but their server.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] for a name that is not of the strict kind of [`Schema`].
    pub fn with_schema(self, schema: &str) -> Result<Self, StoreErrorKind> {
        Ok(Self { schema: Schema::new(schema)?, ..self })
    }

    /// How long a connection may take to be made, 1 ms to [`MAX_PATIENCE`]. Default 2 s.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_connect_timeout(self, connect_timeout: Duration) -> Result<Self, StoreErrorKind> {
        Ok(Self { connect_timeout: patience("connect_timeout", connect_timeout)?, ..self })
    }

    /// How long the server may take to answer, 1 ms to [`MAX_PATIENCE`], before its connection is given up. Default 2 s:
    /// longer than the second for which a request waits for a row that another transaction has locked. Callers have
    /// deadlines of their own, and stop waiting at those.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_response_timeout(self, response_timeout: Duration) -> Result<Self, StoreErrorKind> {
        Ok(Self { response_timeout: patience("response_timeout", response_timeout)?, ..self })
    }

    /// How many connections each runtime that asks may have, 1 to [`MAX_CONNECTIONS`]. Default 4. More than one is made
    /// only when all are busy. What is heard has one more, and so has each gate that is held.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_connections(self, connections: usize) -> Result<Self, StoreErrorKind> {
        if (1..=MAX_CONNECTIONS).contains(&connections) {
            return Ok(Self { connections, ..self });
        }
        refuse(format!("connections={connections} is out of range: 1 to {MAX_CONNECTIONS}"))
    }

    /// How often the server is asked whether the witnesses of watched holders are still connected, 1 ms to
    /// [`MAX_PATIENCE`]. Default 10 ms: one small request for all of them, and none while no lease that is watched is
    /// held under a witness.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_witness_poll(self, witness_poll: Duration) -> Result<Self, StoreErrorKind> {
        Ok(Self { witness_poll: patience("witness_poll", witness_poll)?, ..self })
    }

    /// Whether opening the store also lays out its schema, as [`migrate`](crate::migrate) does. Default no: it needs the
    /// right to create a schema, which a service should not have.
    #[must_use]
    pub fn migrating(self, migrates: bool) -> Self {
        Self { migrates, ..self }
    }

    /// The schema.
    #[must_use]
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The address as errors and spans show it: no user, no password, no parameters but the schema if it is another.
    pub(crate) fn address(&self) -> Arc<str> {
        let ports = self.server.get_ports();
        let port = |at: usize| ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
        let host = |(at, host): (usize, &Host)| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(at)),
            Host::Tcp(name) => format!("{name}:{}", port(at)),
            Host::Unix(path) => format!("{}:{}", path.display(), port(at)),
        };
        let hosts: Vec<_> = self.server.get_hosts().iter().enumerate().map(host).collect();
        let database = self.server.get_dbname().unwrap_or_default();
        let schema = match self.schema.as_str() {
            schema::DEFAULT => String::new(),
            other => format!("?schema={other}"),
        };
        format!("postgres://{}/{database}{schema}", hosts.join(",")).into()
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("address", &self.address())
            .field("user", &self.server.get_user())
            .field("tls", &self.tls.trust)
            .field("schema", &self.schema)
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

fn refuse<T>(problem: String) -> Result<T, StoreErrorKind> {
    Err(StoreErrorKind::Config(problem.into()))
}

fn patience(what: &str, value: Duration) -> Result<Duration, StoreErrorKind> {
    if (Duration::from_millis(1)..=MAX_PATIENCE).contains(&value) {
        return Ok(value);
    }
    refuse(format!("{what}={value:?} is out of range: 1ms to {MAX_PATIENCE:?}"))
}

/// What a file holds that the address names.
fn file(key: &str, path: &str) -> Result<Vec<u8>, StoreErrorKind> {
    std::fs::read(Path::new(path)).or_else(|error| refuse(format!("{key}={path} cannot be read: {error}")))
}
