//! Where `cargo xtask servers` puts what the system has not.

use std::path::PathBuf;

/// Beside what cargo built: the test's program is `target/PROFILE/deps/NAME`.
pub(crate) fn servers() -> PathBuf {
    let this = std::env::current_exe().unwrap_or_default();
    let target = this.ancestors().find(|dir| dir.join("tools/servers").is_dir());
    target.map(|target| target.join("tools/servers")).unwrap_or_default()
}
