//! What an incumbent leaves for the next term.

mod typed;

pub use typed::{EncodeError, NoteFault, UnreadableNote};

use crate::Fence;
use std::{fmt, sync::Arc};

/// The largest note, in bytes. Larger state belongs in the resource, with a reference to it in the note.
pub const MAX_NOTE_BYTES: usize = 256 * 1024;

/// Bytes left under a fence, delivered to the very next term.
#[derive(Clone, PartialEq, Eq)]
pub struct Note {
    from: Fence,
    bytes: Arc<[u8]>,
}

/// The note was too large. It was not stored, and the lease is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a note has at most {MAX_NOTE_BYTES} bytes, this one has {0}: keep the state in the resource and note where"
)]
pub struct NoteTooLarge(
    /// Its size in bytes.
    pub usize,
);

impl Note {
    /// A note written under `from`.
    ///
    /// # Errors
    /// [`NoteTooLarge`] above [`MAX_NOTE_BYTES`].
    pub fn new(from: Fence, bytes: impl Into<Arc<[u8]>>) -> Result<Self, NoteTooLarge> {
        let bytes = bytes.into();
        if bytes.len() > MAX_NOTE_BYTES { Err(NoteTooLarge(bytes.len())) } else { Ok(Self { from, bytes }) }
    }

    /// The fence of the term that wrote it.
    #[must_use]
    pub const fn from(&self) -> Fence {
        self.from
    }

    /// Its bytes, as they were given.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Shows the size, not the contents: a note may hold what a log must not.
impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Note({} bytes from {:?})", self.bytes.len(), self.from)
    }
}
