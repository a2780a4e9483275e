//! PostgreSQL and PgBouncer as the distribution has them. Tests start servers of their own: the packages need not run any,
//! and no cluster of the system's own is made.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{answers, from_the_distribution};

/// Where packages read whether to make a cluster of the system's own, which begins when they are installed.
const CLUSTERS: &str = "/etc/postgresql-common/createcluster.d";

/// Sees to it that both are there.
pub(super) fn ready() -> Result<()> {
    if !has_postgres() {
        if !Path::new("/etc/postgresql").exists() && std::fs::create_dir_all(CLUSTERS).is_ok() {
            // Where this cannot be written, neither can a package be installed, which is said below.
            std::fs::write(Path::new(CLUSTERS).join("leasehold.conf"), "create_main_cluster = false\n").ok();
        }
        from_the_distribution("postgresql")?;
        if !has_postgres() {
            bail!(
                "postgresql was installed, but there is no server program in /usr/lib/postgresql or on PATH"
            );
        }
    }
    if !pgbouncer() {
        from_the_distribution("pgbouncer")?;
        if !pgbouncer() {
            bail!("pgbouncer was installed but does not answer");
        }
    }
    Ok(())
}

/// In the order in which the test kit looks.
fn has_postgres() -> bool {
    if let Some(bin) = std::env::var_os("LEASEHOLD_POSTGRES") {
        return has_server(Path::new(&bin));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|bin| has_server(&bin)) || packaged().iter().any(|bin| has_server(bin))
}

fn packaged() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).collect()
}

/// Both: some distributions have clients, and nothing more, in these places.
fn has_server(bin: &Path) -> bool {
    bin.join("initdb").is_file() && answers(&bin.join("postgres"))
}

fn pgbouncer() -> bool {
    ["pgbouncer", "/usr/sbin/pgbouncer"].iter().any(|program| answers(Path::new(program)))
}
