//! What every store refuses at the door, and in the same words. Nothing was asked of a server then, and nothing changed.

use crate::{
    Envelope, StoreErrorKind,
    mail::MAX_LETTER_BYTES,
    memory::MAX_REASON_BYTES,
    timing::{MAX_TTL, MIN_TTL},
};
use std::time::Duration;

/// A ttl is [`MIN_TTL`] to [`MAX_TTL`]. Zero would end the claim at once, an endless one would block everybody for good:
/// neither is guessed at (rule 9).
///
/// # Errors
/// [`StoreErrorKind::Config`] names the bounds.
pub fn ttl(ttl: Duration) -> Result<(), StoreErrorKind> {
    if (MIN_TTL..=MAX_TTL).contains(&ttl) {
        return Ok(());
    }
    refuse(format!("a ttl of {ttl:?} is outside this store's {MIN_TTL:?} to {MAX_TTL:?}"))
}

/// The reason of a forced release has at most [`MAX_REASON_BYTES`].
///
/// # Errors
/// [`StoreErrorKind::Config`] names the bound.
pub fn reason(reason: &str) -> Result<(), StoreErrorKind> {
    let bytes = reason.len();
    if bytes <= MAX_REASON_BYTES {
        return Ok(());
    }
    refuse(format!("a reason has at most {MAX_REASON_BYTES} bytes, this one {bytes}"))
}

/// The body of a letter has at most [`MAX_LETTER_BYTES`].
///
/// # Errors
/// [`StoreErrorKind::Config`] names the bound.
pub fn letter(letter: &Envelope) -> Result<(), StoreErrorKind> {
    let bytes = letter.body.len();
    if bytes <= MAX_LETTER_BYTES {
        return Ok(());
    }
    refuse(format!("a letter has at most {MAX_LETTER_BYTES} bytes, this one {bytes}; it was not sent"))
}

fn refuse(problem: String) -> Result<(), StoreErrorKind> {
    Err(StoreErrorKind::Config(problem.into()))
}
