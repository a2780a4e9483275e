//! Servers of PostgreSQL refuse to run as root. Where root runs the tests, they run as `nobody`.

use crate::server::User;
use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, chown},
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
};

/// Under whose name they run: `None` where it is whoever runs the tests.
pub(super) fn user() -> Option<User> {
    rustix::process::geteuid().is_root().then(|| {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let nobody = users.lines().find_map(|line| line.strip_prefix("nobody:"));
        let mut numbers = nobody.into_iter().flat_map(|line| line.split(':').skip(1)).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(uid)), Some(Ok(gid))) => User { uid, gid },
            _ => User { uid: 65_534, gid: 65_534 },
        }
    })
}

/// Has a command run under that name.
pub(super) fn run(command: &mut Command) -> &mut Command {
    match user() {
        Some(User { uid, gid }) => command.uid(uid).gid(gid),
        None => command,
    }
}

/// Makes a file or directory theirs, with this mode.
pub(super) fn give(path: &Path, mode: u32) -> io::Result<()> {
    set_mode(path, mode)?;
    match user() {
        Some(User { uid, gid }) => chown(path, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

pub(super) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Whether everybody may come to a program, past every directory on the way.
pub(super) fn reaches(program: &Path) -> bool {
    let open = |path: &Path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o001 != 0);
    user().is_none() || program.canonicalize().is_ok_and(|program| program.ancestors().all(open))
}
