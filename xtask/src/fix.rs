//! `cargo xtask fix`: what a machine can repair, and nothing that needs judgement.

use anyhow::Result;

use crate::step;

/// Applies the fixes of clippy, then formats: in that order, since a fix may leave its line badly laid out.
///
/// # Errors
/// When a command cannot be started or fails, which is also how code that does not compile is reported.
pub(crate) fn run() -> Result<bool> {
    // Changes are the point, so an unclean work tree is no reason to refuse: git still shows what was done.
    step::run(step::cargo().args([
        "clippy",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
        "--workspace",
        "--all-targets",
    ]))?;
    step::run(step::cargo().args(["fmt", "--all"]))?;
    Ok(true)
}
