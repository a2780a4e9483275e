//! The files of a store, and the rights they are made with.

use crate::error::Fault;
use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Only the owner: whoever can write the file can take, end or forge any lease in it.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// The files of a store. All processes must agree on them, so the path is resolved: links, `..` and all.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The database.
    pub(crate) db: PathBuf,
    /// Written to after each change of hands: its watchers wake.
    pub(crate) wake: PathBuf,
    /// One locked file per store instance that holds witnessed claims.
    pub(crate) witnesses: PathBuf,
    /// One file per gate.
    pub(crate) gates: PathBuf,
}

/// What tells one file from another that took its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl Place {
    /// Resolves `path`, and makes its directory if that is missing.
    pub(crate) fn resolve(path: &Path) -> Result<Self, Fault> {
        let Some(name) = path.file_name() else {
            return Err(Fault::config(format!("{} names a directory: name a file in it", path.display())));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        DirBuilder::new().recursive(true).mode(DIR_MODE).create(parent).map_err(Fault::file(parent))?;
        let db = parent.canonicalize().map_err(Fault::file(parent))?.join(name);
        // The file itself may be a link.
        let db = match db.canonicalize() {
            Ok(target) => target,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => db,
            Err(cause) => return Err(Fault::file(db)(cause)),
        };
        let beside = |suffix| {
            let mut name = db.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        Ok(Self { wake: beside("-wake"), witnesses: beside("-witness"), gates: beside("-gates"), db })
    }

    /// Where SQLite keeps the file's write-ahead log and its index.
    pub(crate) fn leftovers(&self) -> [PathBuf; 2] {
        ["-wal", "-shm"].map(|suffix| {
            let mut name = self.db.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        })
    }

    /// What is at the database's path. Never opens it: closing any descriptor of the file would silently drop the
    /// locks that SQLite holds on it in this process.
    pub(crate) fn look(&self) -> io::Result<Option<Metadata>> {
        match std::fs::metadata(&self.db) {
            Ok(found) => Ok(Some(found)),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// The rights of the database file, which an operator may have widened on purpose: files beside it get the same.
    fn mode(&self) -> u32 {
        self.look().ok().flatten().map_or(FILE_MODE, |found| found.mode() & 0o666)
    }

    /// Opens a file beside the database for writing, and makes it if it is missing.
    pub(crate) fn open_beside(&self, path: &Path) -> Result<File, Fault> {
        let mode = self.mode();
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(mode);
        let opened = match options.create_new(true).open(path) {
            // The process's umask may have taken away what the database's mode gives on purpose.
            Ok(fresh) => fresh.set_permissions(Permissions::from_mode(mode)).map(|()| fresh),
            Err(there) if there.kind() == io::ErrorKind::AlreadyExists => {
                // Created again if it was removed meanwhile; then by the umask.
                options.create_new(false).create(true).open(path)
            }
            Err(cause) => Err(cause),
        };
        opened.map_err(Fault::file(path))
    }

    /// Makes a directory beside the database.
    pub(crate) fn make_dir(&self, path: &Path) -> Result<(), Fault> {
        let mode = self.mode();
        // Whoever may read a file may enter its directory.
        let mode = mode | ((mode & 0o444) >> 2);
        match DirBuilder::new().mode(mode).create(path) {
            Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(Fault::file(path)),
            Err(there) if there.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(cause) => Err(Fault::file(path)(cause)),
        }
    }

    /// Makes a new file, only for the owner, that did not exist before.
    pub(crate) fn make_new(path: &Path) -> Result<File, Fault> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE).open(path).map_err(Fault::file(path))
    }
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

impl FileId {
    /// The file that has the name now.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Self::from)
    }
}
