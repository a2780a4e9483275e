//! `cargo xtask bench`: what leasehold costs, measured beside its yardsticks in one run, and kept in the book.

use anyhow::Result;

use crate::step;

/// Runs the benchmarks, prints their table, and writes it to `docs/performance.md`. Never part of a check: a busy
/// machine is not a bug.
///
/// # Errors
/// When the benchmarks do not build, or one of them cannot be carried out.
pub(crate) fn run() -> Result<bool> {
    let page = crate::root().join("docs/performance.md");
    step::run(
        step::cargo()
            .args(["run", "--release", "--locked", "--package", "leasehold-bench", "--", "--keep"])
            .arg(page),
    )?;
    Ok(true)
}
