//! The kinds and versions of servers that tests run against.

use std::path::PathBuf;

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavour {
    /// Redis as the system has it: `redis-server` on the path.
    #[default]
    System,
    /// Redis 6.2, the oldest that leasehold works with.
    Redis62,
    /// Redis 8.2.
    Redis82,
    /// Valkey.
    Valkey,
}

impl Flavour {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::System, Self::Redis62, Self::Redis82, Self::Valkey];

    /// Its program. `cargo xtask servers` puts the ones that the system has not into `target/tools/servers`; another
    /// place may be named in `LEASEHOLD_REDIS_6_2`, `LEASEHOLD_REDIS_8_2` and `LEASEHOLD_VALKEY`.
    #[must_use]
    pub fn program(self) -> PathBuf {
        let (variable, name) = match self {
            Self::System => return "redis-server".into(),
            Self::Redis62 => ("LEASEHOLD_REDIS_6_2", "redis-server-6.2"),
            Self::Redis82 => ("LEASEHOLD_REDIS_8_2", "redis-server-8.2"),
            Self::Valkey => ("LEASEHOLD_VALKEY", "valkey-server"),
        };
        std::env::var_os(variable).map_or_else(|| crate::tools::servers().join(name), PathBuf::from)
    }

    pub(super) fn knows_debug_setting(self) -> bool {
        self != Self::Redis62
    }
}
