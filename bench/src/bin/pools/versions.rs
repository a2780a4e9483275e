//! What was measured.

use std::process::Command;

use anyhow::{Context as _, Result};

const LOCK_FILE: &str = include_str!("../../../../Cargo.lock");

/// The pools as this program was built with them, the servers as they say it.
pub(crate) fn line(server: &str) -> Result<String> {
    let mut said = Vec::new();
    for name in ["deadpool-postgres", "bb8-postgres", "sqlx", "tokio-postgres"] {
        said.push(format!("{name} {}", version(name).with_context(|| format!("no version of {name}"))?));
    }
    let program = ["/usr/sbin/pgbouncer", "pgbouncer"]
        .iter()
        .find_map(|at| Command::new(at).arg("--version").output().ok());
    let pooler = program.context("PgBouncer is not installed")?.stdout;
    let pooler = String::from_utf8_lossy(&pooler);
    said.push(pooler.lines().next().unwrap_or_default().trim().to_owned());
    said.push(format!("PostgreSQL {server}"));
    Ok(format!("Measured with {}.", said.join(", ")))
}

fn version(package: &str) -> Option<&'static str> {
    let (_, rest) = LOCK_FILE.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    Some(rest.split_once('"')?.0)
}
