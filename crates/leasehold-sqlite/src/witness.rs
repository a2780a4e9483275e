//! The crash witness: a file lock that the operating system lets go when it ends the process.
//!
//! Each store instance that holds witnessed claims keeps one file locked in the directory of witnesses. Whoever can
//! lock that file too has proof that nobody holds it open any more: the process was ended. A file that is *missing*
//! proves nothing, for anybody may have removed it; then the ttl decides.
//!
//! ```text
//! .new-HEX ─ lock ─► rename to HEX.INODE ─► claims name it ─┬─ process ends: the lock falls, the file stays   ⇒ dead
//!                                                           └─ store dropped: file removed, then the lock falls ⇒ ttl
//! ```

use crate::{error::Fault, place::Place};
use leasehold_core::AttemptId;
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

const FRESH: &str = ".new-";

/// The locked file of one store instance. Dropping it withdraws the testimony: the claims that name it live on until
/// their ttl.
#[derive(Debug)]
pub(crate) struct Witness {
    name: String,
    path: PathBuf,
    // Opened close-on-exec, so that programs started by this process do not keep the lock; opened for writing, so
    // that the kernel tells watchers when it is closed. Taken out only to be leaked.
    locked: Option<File>,
}

/// What a witness file says of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulse {
    /// It lives: its lock is held.
    Beats,
    /// It was ended: the file is there and its lock is free.
    Stopped,
    /// No proof either way.
    Unknown,
}

impl Witness {
    /// Makes and locks a fresh file.
    pub(crate) fn appear(place: &Place) -> Result<Self, Fault> {
        place.make_dir(&place.witnesses)?;
        let id = AttemptId::random().to_hex();
        let fresh = place.witnesses.join(format!("{FRESH}{id}"));
        let file = place.open_beside(&fresh)?;
        // Nobody knows the name yet, so the lock is free. Locked before it has its name: whoever finds a named
        // witness unlocked may believe it.
        file.try_lock().map_err(|refused| Fault::file(&fresh)(refused.into()))?;
        let inode = file.metadata().map_err(Fault::file(&fresh))?.ino();
        // The inode in the name tells this file from a copy of it, which nobody holds locked.
        let name = format!("{id}.{inode}");
        let path = place.witnesses.join(&name);
        std::fs::rename(&fresh, &path).map_err(Fault::file(&path))?;
        Ok(Self { name, path, locked: Some(file) })
    }

    /// The name by which claims refer to it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // Before the lock falls, or the end of this store would look like a crash.
        match std::fs::remove_file(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // The directory became read-only, say. While the file stands its lock must not fall, for this process lives
            // on: the operating system takes the lock with the process.
            Err(_) => std::mem::forget(self.locked.take()),
        }
    }
}

/// Whether `name` is one that [`Witness::appear`] gives. Anything else must never become part of a path.
pub(crate) fn is_name(name: &str) -> bool {
    inode_in(name).is_some()
}

fn inode_in(name: &str) -> Option<u64> {
    let (id, inode) = name.split_once('.')?;
    let digits = !inode.is_empty() && inode.bytes().all(|b| b.is_ascii_digit());
    (AttemptId::from_hex(id).is_some() && digits).then(|| inode.parse().ok())?
}

/// Feels the pulse of a witness.
pub(crate) fn pulse(place: &Place, name: &str) -> Pulse {
    match inode_in(name) {
        Some(inode) => feel(&place.witnesses.join(name), inode).unwrap_or(Pulse::Unknown),
        None => Pulse::Unknown,
    }
}

fn feel(path: &Path, inode: u64) -> io::Result<Pulse> {
    // Not blocking, not following: whatever lies there, looking at it must not hang.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let genuine = |found: &Metadata| found.is_file() && found.ino() == inode;
    if !genuine(&file.metadata()?) {
        return Ok(Pulse::Unknown);
    }
    match file.try_lock_shared() {
        // Looked at again with the lock in hand: a store that is dropped removes the file first.
        Ok(()) if file.metadata()?.nlink() > 0 && genuine(&std::fs::symlink_metadata(path)?) => {
            Ok(Pulse::Stopped)
        }
        Ok(()) => Ok(Pulse::Unknown),
        Err(std::fs::TryLockError::WouldBlock) => Ok(Pulse::Beats),
        Err(std::fs::TryLockError::Error(cause)) => Err(cause),
    }
}

/// Removes a witness whose claims are all ended.
pub(crate) fn bury(place: &Place, name: &str) {
    if is_name(name) {
        drop(std::fs::remove_file(place.witnesses.join(name)));
    }
}

/// The witnesses whose processes have ended, and removes unfinished ones.
pub(crate) fn stopped(place: &Place) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(&place.witnesses) else { return Vec::new() };
    let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
    let (unfinished, finished): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with(FRESH));
    for name in unfinished {
        let path = place.witnesses.join(name);
        // One that is being made is locked, or will fail its rename and be made anew by the next bid.
        if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            drop(std::fs::remove_file(path));
        }
    }
    finished.into_iter().filter(|name| pulse(place, name) == Pulse::Stopped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A living process whose store is closed must not look crashed because a directory has become read-only.
    #[test]
    fn a_witness_that_cannot_be_removed_keeps_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::resolve(&dir.path().join("leases.db")).unwrap();
        let witness = Witness::appear(&place).unwrap();
        // What stands at its path now, no removal of a file takes away, not even root's.
        let (path, aside) = (witness.path.clone(), dir.path().join("aside"));
        std::fs::rename(&path, &aside).unwrap();
        std::fs::create_dir(&path).unwrap();
        drop(witness);
        assert!(
            File::open(&aside).unwrap().try_lock_shared().is_err(),
            "its lock stands as long as the process"
        );
    }
}
