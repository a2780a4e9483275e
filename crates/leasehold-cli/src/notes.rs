//! Notes between terms, as files for a command.
//!
//! The directory is private to this user and goes with the term.

use leasehold::{NoteTooLarge, Term};
use std::{
    fs::{self, File},
    io::{self, Read},
    path::PathBuf,
};
use tempfile::TempDir;

/// A note above this is refused by every store; one byte more is read, to notice it.
const MAX_NOTE: u64 = 256 * 1024;

/// The files of one term.
#[derive(Debug)]
pub(crate) struct Notes {
    dir: TempDir,
    inherited: bool,
}

impl Notes {
    /// Makes the directory, and the file with the note of the term before, if it left one.
    pub(crate) fn open(term: &Term) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("leasehold-").tempdir()?;
        let notes = Self { dir, inherited: term.inherited().is_some() };
        if let Some(note) = term.inherited() {
            fs::write(notes.dir.path().join("in"), note.bytes())?;
        }
        Ok(notes)
    }

    /// The file with the note of the term before.
    pub(crate) fn incoming(&self) -> Option<PathBuf> {
        self.inherited.then(|| self.dir.path().join("in"))
    }

    /// Where the command may leave a note; the file is not there yet.
    pub(crate) fn outgoing(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// Hands what the command left to the term. Called after the command has ended.
    pub(crate) fn hand_on(&self, term: &Term) {
        let mut note = Vec::new();
        let path = self.outgoing();
        // Looked at before it is opened: opening a FIFO waits for its writer.
        let read = fs::metadata(&path).and_then(|found| match found.is_file() {
            true => {
                File::open(&path)?.take(MAX_NOTE + 1).read_to_end(&mut note)?;
                Ok(found.len())
            }
            false => Err(io::Error::other("it is not a file")),
        });
        match read {
            Ok(_) if note.is_empty() => {}
            // No more of it was read than it takes to notice, so its size is that of the file.
            Ok(size) if size > MAX_NOTE => {
                let error = NoteTooLarge(usize::try_from(size).unwrap_or(usize::MAX));
                tracing::warn!(lease = %term.name(), %error, "the command's note was dropped");
            }
            Ok(_) => {
                if let Err(error) = term.leave_note(note) {
                    tracing::warn!(lease = %term.name(), %error, "the command's note was dropped");
                }
            }
            // It left none.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(lease = %term.name(), %error, "the command's note cannot be read"),
        }
    }
}
