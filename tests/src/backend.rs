//! The stores that several processes can share.

use leasehold_testkit::{
    postgres::{Postgres, PostgresServer},
    redis::{Redis, RedisServer},
};
use std::path::Path;

/// A kind of store that several processes can share. `memory:` is none: each process would have its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A file of this host.
    Sqlite,
    /// A Redis server.
    Redis,
    /// A PostgreSQL server, as the system has it.
    Postgres,
}

/// A fresh store, and what must run as long as it is used.
#[derive(Debug)]
pub(crate) struct Housing {
    pub(crate) address: String,
    pub(crate) server: Server,
}

/// What keeps a store.
#[derive(Debug)]
pub(crate) enum Server {
    /// Nobody, or somebody else.
    None,
    Redis(RedisServer),
    Postgres(PostgresServer),
}

impl Backend {
    /// A fresh store. What it needs on disk goes below `dir`.
    pub(crate) async fn house(self, dir: &Path) -> Housing {
        match self {
            Self::Sqlite => {
                let address = format!("sqlite:{}", dir.join("leases.db").display());
                Housing { address, server: Server::None }
            }
            Self::Redis => {
                let server = Redis::new()
                    .appendonly("everysec")
                    .start()
                    .await
                    .unwrap_or_else(|error| panic!("{error}"));
                Housing { address: server.url(), server: Server::Redis(server) }
            }
            Self::Postgres => Housing::on(Postgres::new()).await,
        }
    }
}

impl Housing {
    /// On a server that is as described. Its schema is made by whoever comes first.
    pub(crate) async fn on(postgres: Postgres) -> Self {
        let server = postgres.start().await.unwrap_or_else(|error| panic!("{error}"));
        Self { address: format!("{}?migrate=yes", server.url()), server: Server::Postgres(server) }
    }
}

/// Makes a test of each function, on every store: `sqlite::a_late_write_is_refused`, and so on.
///
/// The functions take a [`&Site`](crate::Site). A store that is added here is added to every whole-system test.
#[macro_export]
macro_rules! on_every_store {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[test]
                fn $test() {
                    let site = $crate::Site::new($crate::Backend::Sqlite, env!("CARGO_BIN_EXE_replica"));
                    super::$test(&site);
                }
            )*
        }

        mod redis {
            $(
                #[test]
                fn $test() {
                    let site = $crate::Site::new($crate::Backend::Redis, env!("CARGO_BIN_EXE_replica"));
                    super::$test(&site);
                }
            )*
        }

        mod postgres {
            $(
                #[test]
                fn $test() {
                    let site = $crate::Site::new($crate::Backend::Postgres, env!("CARGO_BIN_EXE_replica"));
                    super::$test(&site);
                }
            )*
        }
    };
}
