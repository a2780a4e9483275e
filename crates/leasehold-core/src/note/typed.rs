//! Notes with a type: a value and the version of its schema, in an envelope of JSON.
//!
//! Programs of two releases meet during a rolling upgrade, in both directions: an older one may be elected after a newer
//! one. So a note says which schema it follows, and one that cannot be read is told from a note that was never left.

use super::{Note, NoteTooLarge};
use crate::Fence;
use serde::{Deserialize, Serialize, de::DeserializeOwned, de::IgnoredAny};

/// How every envelope begins. It tells one from JSON that a program wrote by itself; reading alone would not, for a list of
/// two numbers fits a struct of two fields.
const MARK: &[u8] = b"{\"leasehold-note\":";

/// The envelope as it is stored.
#[derive(Serialize, Deserialize)]
struct Envelope<B> {
    #[serde(rename = "leasehold-note")]
    version: u32,
    body: B,
}

/// A value could not be made a note. Nothing was left or stored by this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// In its envelope it is too large.
    #[error(transparent)]
    TooLarge(#[from] NoteTooLarge),
    /// It has no form in JSON, such as a map whose keys are not strings or numbers.
    #[error("the value has no form in JSON: {0}")]
    Shape(#[source] serde_json::Error),
}

/// A note is there and could not be read as asked. It is kept here as it was left: nothing of it is lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the note left under fence {} ({} bytes) cannot be read: {fault}", .note.from(), .note.bytes().len())]
pub struct UnreadableNote {
    /// The note.
    pub note: Note,
    /// Why.
    pub fault: NoteFault,
}

/// Why a note cannot be read.
///
/// It shows nothing of the contents, for a note may hold what a log must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteFault {
    /// It was left as plain bytes, or is damaged.
    #[error("it is not a typed note; its writer left plain bytes, or it is damaged")]
    Untyped,
    /// It follows another schema.
    #[error("it has schema version {found}, and version {wanted} was asked for")]
    Version {
        /// That of the note.
        found: u32,
        /// That of the reader.
        wanted: u32,
    },
    /// It says that it follows the schema, and its value does not fit the type.
    #[error("its value does not fit the type of version {version}, at line {line} column {column}")]
    Body {
        /// Its version.
        version: u32,
        /// Where reading ended, from 1.
        line: usize,
        /// Where reading ended in the line.
        column: usize,
    },
}

impl Note {
    /// A note that holds `value`, under `from`, with the version of the schema that `value` follows.
    ///
    /// Give a new version to each change that an older program would misread. A new field with a default is none.
    /// A float that is not finite becomes `null`, as always in JSON.
    ///
    /// # Errors
    /// [`EncodeError`]: it has no form in JSON, or more than [`MAX_NOTE_BYTES`](super::MAX_NOTE_BYTES) with its envelope.
    pub fn encode<T: Serialize + ?Sized>(from: Fence, version: u32, value: &T) -> Result<Self, EncodeError> {
        let bytes = serde_json::to_vec(&Envelope { version, body: value }).map_err(EncodeError::Shape)?;
        Ok(Self::new(from, bytes)?)
    }

    /// The version of the schema that a typed note follows; `None` if it is not a typed one.
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        let envelope = self.bytes().starts_with(MARK).then_some(self.bytes())?;
        serde_json::from_slice::<Envelope<IgnoredAny>>(envelope).ok().map(|envelope| envelope.version)
    }

    /// The value of a typed note that follows schema `version`. A program that reads several asks
    /// [`Self::version`] first.
    ///
    /// # Errors
    /// [`UnreadableNote`], with the note in it: plain bytes, another version, or a value that does not fit `T`.
    pub fn decode<T: DeserializeOwned>(&self, version: u32) -> Result<T, UnreadableNote> {
        let unreadable = |fault| UnreadableNote { note: self.clone(), fault };
        match self.version() {
            None => Err(unreadable(NoteFault::Untyped)),
            Some(found) if found != version => Err(unreadable(NoteFault::Version { found, wanted: version })),
            Some(_) => match serde_json::from_slice::<Envelope<T>>(self.bytes()) {
                Ok(envelope) => Ok(envelope.body),
                Err(error) => {
                    let (line, column) = (error.line(), error.column());
                    Err(unreadable(NoteFault::Body { version, line, column }))
                }
            },
        }
    }
}
