//! What went wrong on the way to a store error: raw faults, and what they are called outside.

use crate::site::Site;
use leasehold_core::{LeaseName, StoreError, StoreErrorKind, Verb};
use rusqlite::{Error as SqliteError, ErrorCode, ffi};
use std::{
    io,
    path::{Path, PathBuf},
};

/// A fault as it was met, before it is known for which verb and lease.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite said so.
    #[error(transparent)]
    Sqlite(#[from] SqliteError),
    /// A file beside the database could not be used.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// We say so.
    #[error(transparent)]
    Known(#[from] StoreErrorKind),
    /// Nobody waits for the answer, so the change was undone before it was made.
    #[error("the caller gave up waiting")]
    CallerGone,
}

/// A fault, and whether the change it interrupted may nevertheless have been made.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// False: certainly nothing was changed.
    pub(crate) perhaps_done: bool,
}

impl<F: Into<Fault>> From<F> for Failure {
    fn from(fault: F) -> Self {
        Self { fault: fault.into(), perhaps_done: false }
    }
}

impl Fault {
    /// A fault with one file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::File { path, cause }
    }

    /// A value that we did not write or cannot read.
    pub(crate) fn damage(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Known(StoreErrorKind::Corrupt { key: key.into().into(), problem: problem.into().into() })
    }

    /// A configuration or an argument that cannot work.
    pub(crate) fn config(problem: impl Into<String>) -> Self {
        Self::Known(StoreErrorKind::Config(problem.into().into()))
    }

    /// The fault as the outside knows it.
    pub(crate) fn told(self, site: &Site, verb: Verb, lease: Option<&LeaseName>) -> StoreError {
        let kind = self.kind(site);
        let mut error = StoreError::new(kind, verb, site.address.clone());
        if let Some(lease) = lease {
            error = error.on(lease);
        }
        if matches!(self, Self::Known(_)) { error } else { error.because(self) }
    }

    /// The fault of a store whose site could not even be found.
    pub(crate) fn told_without_site(self, path: &Path) -> StoreError {
        let kind = match &self {
            Self::Known(kind) => kind.clone(),
            Self::File { cause, .. } => file_kind(cause),
            Self::CallerGone | Self::Sqlite(_) => StoreErrorKind::Other,
        };
        let error = StoreError::new(kind, Verb::Connect, format!("sqlite:{}", path.display()));
        if matches!(self, Self::Known(_)) { error } else { error.because(self) }
    }

    fn kind(&self, site: &Site) -> StoreErrorKind {
        match self {
            Self::Known(kind) => kind.clone(),
            Self::CallerGone => StoreErrorKind::Other,
            Self::File { cause, .. } => file_kind(cause),
            Self::Sqlite(error) => sqlite_kind(error, site),
        }
    }
}

fn file_kind(cause: &io::Error) -> StoreErrorKind {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => StoreErrorKind::Denied,
        io::ErrorKind::ReadOnlyFilesystem => StoreErrorKind::ReadOnly,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreErrorKind::Full
        }
        io::ErrorKind::NotFound => StoreErrorKind::Unreachable,
        io::ErrorKind::NotADirectory => StoreErrorKind::Config(
            "a part of the store's path is a file, not a directory: name another place".into(),
        ),
        _ => StoreErrorKind::Other,
    }
}

fn sqlite_kind(error: &SqliteError, site: &Site) -> StoreErrorKind {
    let corrupt = |problem: &str| StoreErrorKind::Corrupt {
        key: site.place.db.display().to_string().into(),
        problem: problem.into(),
    };
    if let Some(what) = missing(error) {
        return corrupt(what);
    }
    let SqliteError::SqliteFailure(failure, _) = error else {
        return StoreErrorKind::Other;
    };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreErrorKind::Locked(site.busy_timeout),
        // The file may be written, but not the directory, where its log must be made.
        ErrorCode::ReadOnly if failure.extended_code == ffi::SQLITE_READONLY_DIRECTORY => {
            StoreErrorKind::Denied
        }
        ErrorCode::ReadOnly => StoreErrorKind::ReadOnly,
        ErrorCode::PermissionDenied => StoreErrorKind::Denied,
        ErrorCode::DiskFull => StoreErrorKind::Full,
        ErrorCode::NotADatabase => StoreErrorKind::Foreign { found: "not a SQLite database".into() },
        ErrorCode::DatabaseCorrupt => corrupt("SQLite finds the file malformed"),
        // SQLite reports most failures of the disk alike; the disk itself knows more.
        ErrorCode::CannotOpen | ErrorCode::SystemIoFailure => site.disk_trouble(),
        _ => StoreErrorKind::Other,
    }
}

/// What a statement of ours did not find. The statements are constant: what they miss was removed from the file.
pub(crate) fn missing(error: &SqliteError) -> Option<&str> {
    match error {
        SqliteError::SqlInputError { msg, .. } => Some(msg),
        SqliteError::SqliteFailure(failure, Some(msg)) if failure.extended_code == ffi::SQLITE_ERROR => {
            Some(msg)
        }
        _ => None,
    }
}
