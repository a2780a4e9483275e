//! The versions of PostgreSQL that tests run against.

use super::{home, unprivileged};
use crate::server::StartError;
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A version of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavour {
    /// As the system has it: on the path, or where distributions put servers (the highest version there).
    #[default]
    System,
    /// PostgreSQL 18.
    Postgres18,
}

impl Flavour {
    /// Every version.
    pub const ALL: [Self; 2] = [Self::System, Self::Postgres18];

    /// The directory of its programs, as `postgres` and `psql`. `cargo xtask servers` puts the one that the system has
    /// not into `target/tools/servers`; other places may be named in `LEASEHOLD_POSTGRES` and `LEASEHOLD_POSTGRES_18`.
    /// `None` where the system has none.
    #[must_use]
    pub fn bin(self) -> Option<PathBuf> {
        match self {
            Self::System => env::var_os("LEASEHOLD_POSTGRES").map(PathBuf::from).or_else(on_the_system),
            Self::Postgres18 => Some(
                env::var_os("LEASEHOLD_POSTGRES_18")
                    .map_or_else(|| crate::tools::servers().join("postgresql-18/bin"), PathBuf::from),
            ),
        }
    }
}

fn on_the_system() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let has_servers = |bin: &PathBuf| bin.join("postgres").is_file() && bin.join("initdb").is_file();
    // Some link the server's programs from there, and not all of them.
    let home = |bin: PathBuf| Some(bin.join("postgres").canonicalize().ok()?.parent()?.to_owned());
    env::split_paths(&path).find(has_servers).and_then(home).or_else(|| {
        // Debian's place. Versions are numbers: 9.6 is below 15.
        let version = |at: &Path| at.file_name()?.to_str()?.parse::<f64>().ok();
        let all =
            fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path());
        let mut all: Vec<_> = all.filter(|at| has_servers(&at.join("bin"))).collect();
        all.sort_by(|one, other| {
            version(one).partial_cmp(&version(other)).unwrap_or(std::cmp::Ordering::Equal)
        });
        Some(all.pop()?.join("bin"))
    })
}

/// Programs that whoever runs the servers can reach.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    bin: PathBuf,
    /// As they say it themselves, such as `15.14`.
    pub(super) version: String,
}

impl Programs {
    pub(super) fn of(flavour: Flavour) -> Result<Self, StartError> {
        let missing = |bin: &Path| StartError::NotInstalled(bin.join("postgres"));
        let bin = flavour.bin().ok_or_else(|| missing(Path::new("")))?;
        let asked = Command::new(bin.join("postgres")).arg("--version").stdin(Stdio::null()).output();
        let said = asked.map_err(|_| missing(&bin))?.stdout;
        let said = String::from_utf8_lossy(&said);
        let version = said.split_whitespace().nth(2).ok_or_else(|| missing(&bin))?.to_owned();
        let programs = Self { bin, version };
        if unprivileged::reaches(&programs.program("postgres")) {
            return Ok(programs);
        }
        // Below root's own home, for one. The programs find the rest beside them.
        let all = programs.bin.parent().unwrap_or(&programs.bin);
        let bin = home::kept(&format!("programs-{}", programs.version), |place| home::copy(all, place))?
            .join("bin");
        Ok(Self { bin, ..programs })
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// The data of a server that runs, to begin as its standby.
    pub(super) fn copy_of_running(&self, dir: &Path, port: u16, data: &Path) -> io::Result<()> {
        let mut copy = Command::new(self.program("pg_basebackup"));
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync"]);
        copy.args(["--username=postgres", &format!("--port={port}"), "--host"])
            .arg(dir)
            .arg("--pgdata")
            .arg(data);
        finish(&mut copy)
    }
}

/// Runs a program under the servers' name, to its good end.
pub(super) fn finish(command: &mut Command) -> io::Result<()> {
    let done = unprivileged::run(command).current_dir("/").stdin(Stdio::null()).output()?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(io::Error::other(format!("{} failed: {said}", command.get_program().display())))
}
