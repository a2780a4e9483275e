//! Data of a new server: made once a version, kept in the system's directory for what is temporary, and copied.
//!
//! Making them takes a second of work, a copy less than a tenth of it. All copies have the same system identifier.

use super::{
    flavour::{Programs, finish},
    unprivileged,
};
use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// New data, for a server that runs under the servers' name.
pub(super) fn new(programs: &Programs, data: &Path) -> io::Result<()> {
    let made = kept(&format!("data-{}", programs.version), |place| {
        let dir = place.parent().unwrap_or(place);
        unprivileged::give(dir, 0o755)?;
        let mut init = Command::new(programs.program("initdb"));
        init.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        // Small segments: a copy is half as large.
        init.args(["--no-sync", "--no-instructions", "--wal-segsize=1"]).arg("--pgdata").arg(place);
        finish(&mut init)
    })?;
    copy_to_owner(&made, data)
}

/// What `make` makes at a place, once for all tests of this user on this machine.
pub(super) fn kept(name: &str, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let all = std::env::temp_dir().join(format!("leasehold-postgres-{me}"));
    if let Err(error) = fs::create_dir(&all)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    if fs::symlink_metadata(&all)?.uid() != me {
        return Err(io::Error::other(format!("{} is somebody else's", all.display())));
    }
    unprivileged::set_mode(&all, 0o755)?;
    let place = all.join(name);
    if !place.exists() {
        // Aside, so that nobody sees half of it. Whoever comes second drops its own.
        let aside = TempDir::new_in(&all)?;
        unprivileged::set_mode(aside.path(), 0o755)?;
        make(&aside.path().join(name))?;
        if let Err(error) = fs::rename(aside.path().join(name), &place)
            && !place.exists()
        {
            return Err(error);
        }
    }
    Ok(place)
}

/// A copy of a directory, modes and all.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_each(from, to, &|_| Ok(()))
}

fn copy_to_owner(from: &Path, to: &Path) -> io::Result<()> {
    copy_each(from, to, &|path| {
        let mode = fs::symlink_metadata(path)?.permissions().mode();
        unprivileged::give(path, mode & 0o7777)
    })
}

fn copy_each(from: &Path, to: &Path, then: &dyn Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if found.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if found.is_dir() {
        fs::create_dir(to)?;
        fs::set_permissions(to, found.permissions())?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_each(&entry.path(), &to.join(entry.file_name()), then)?;
        }
    } else {
        fs::copy(from, to)?;
    }
    then(to)
}

/// Adds lines to a file, which stays whose it is.
pub(super) fn append(file: &Path, lines: &[String]) -> io::Result<()> {
    let text = fs::read_to_string(file)?;
    fs::write(file, format!("{text}\n{}\n", lines.join("\n")))
}

/// Writes a file anew, which stays whose it is.
pub(super) fn replace(file: &Path, lines: &[String]) -> io::Result<()> {
    fs::write(file, lines.join("\n") + "\n")
}
