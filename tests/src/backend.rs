//! The stores that several processes can share.

use leasehold_testkit::redis::{Redis, RedisServer};
use std::path::Path;

/// A kind of store that several processes can share. `memory:` is none: each process would have its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A file of this host.
    Sqlite,
    /// A Redis server.
    Redis,
}

/// A fresh store, and what must run as long as it is used.
#[derive(Debug)]
pub(crate) struct Housing {
    pub(crate) address: String,
    pub(crate) redis: Option<RedisServer>,
}

impl Backend {
    /// A fresh store. What it needs on disk goes below `dir`.
    pub(crate) async fn house(self, dir: &Path) -> Housing {
        match self {
            Self::Sqlite => {
                Housing { address: format!("sqlite:{}", dir.join("leases.db").display()), redis: None }
            }
            Self::Redis => {
                let server = Redis::new()
                    .appendonly("everysec")
                    .start()
                    .await
                    .unwrap_or_else(|error| panic!("{error}"));
                Housing { address: server.url(), redis: Some(server) }
            }
        }
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
    };
}
