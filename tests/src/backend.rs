//! The stores that several processes can share.

use std::path::Path;

/// A kind of store that several processes can share. `memory:` is none: each process would have its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A file of this host.
    Sqlite,
}

impl Backend {
    /// The address of a fresh store. What it needs on disk goes below `dir`.
    #[must_use]
    pub fn address(self, dir: &Path) -> String {
        match self {
            Self::Sqlite => format!("sqlite:{}", dir.join("leases.db").display()),
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
    };
}
