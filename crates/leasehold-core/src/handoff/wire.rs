//! The bytes of a letter: JSON in the body of an [`Envelope`], readable by an older and by a newer peer.
//!
//! ```json
//! {"v":1,"min":1,"handoff":"000102…","fence":7,"remaining_ms":30000,"why":"shutting down"}
//! ```
//!
//! The envelope's kind says what is said (`handoff.propose`, …); its lease and trace are the letter's. Rules for a rolling
//! upgrade: fields that a reader does not know are skipped; `min` is the oldest version whose readers understand the letter,
//! and a reader below it reports [`Unreadable::TooNew`] and goes on; a kind that it does not know is
//! [`Unreadable::UnknownKind`]. Whoever cannot read a letter behaves as if it had been lost, which every machine survives.

use super::{HandoffId, Letter, Message};
use crate::{Envelope, Fence, ReplicaId};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The version of the protocol that is written here.
pub const VERSION: u32 = 1;
/// The oldest version whose readers understand what is written here.
pub const OLDEST_READER: u32 = 1;
/// The largest body that is read, in bytes. What is written is smaller by far.
pub const MAX_BODY_BYTES: usize = 4096;
/// The longest `why` of a [`Message::Decline`], in bytes; a longer one is cut, at a character's boundary.
pub const MAX_WHY_BYTES: usize = 500;
/// The longest `remaining` that is believed: nobody plans further, and the reader must not wait for ever.
pub const MAX_REMAINING: Duration = Duration::from_hours(2);

/// The longest `stay` that is believed.
pub const MAX_STAY: Duration = Duration::from_hours(24 * 7);

const PREFIX: &str = "handoff.";

/// Why a letter could not be read. It was not acted upon; nothing else follows from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// It is about something else than handoffs. Not an error: somebody else may read it.
    #[error("not a letter about a handoff")]
    NotOurs,
    /// Written by a newer program that says something we do not know.
    #[error("a letter of an unknown kind was ignored; its writer is probably newer than this program")]
    UnknownKind,
    /// Written by a newer program, for readers not older than this.
    #[error(
        "a letter for protocol version {min} and above was ignored; this program reads up to {VERSION}: update it"
    )]
    TooNew {
        /// The oldest version that can read it.
        min: u32,
    },
    /// Larger than [`MAX_BODY_BYTES`]; it was not looked into.
    #[error("a letter of {0} bytes was ignored; one about a handoff has at most {MAX_BODY_BYTES}")]
    TooLarge(
        /// Its size in bytes.
        usize,
    ),
    /// Not JSON, or a field is missing or out of its range.
    #[error("a damaged letter was ignored ({0})")]
    Damaged(
        /// What is wrong, without its contents.
        &'static str,
    ),
}

#[derive(Serialize, Deserialize)]
struct Body {
    v: u32,
    min: u32,
    handoff: String,
    fence: u64,
    remaining_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    stay_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assumed: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Only this much of a body is promised to be readable in all versions.
#[derive(Deserialize)]
struct Preface {
    min: u32,
}

/// The envelope for a letter from `from`.
#[must_use]
pub fn seal(letter: &Letter, from: &ReplicaId) -> Envelope {
    let (kind, why, assumed) = match &letter.message {
        Message::Propose { .. } => ("handoff.propose", None, None),
        Message::Ready => ("handoff.ready", None, None),
        Message::Decline { why } => ("handoff.decline", Some(cut(why).to_owned()), None),
        Message::Yours => ("handoff.yours", None, None),
        Message::Assumed { fence } => ("handoff.assumed", None, Some(fence.get())),
        Message::Abort => ("handoff.abort", None, None),
    };
    let stay_ms = match &letter.message {
        Message::Propose { stay } => u64::try_from(stay.min(&MAX_STAY).as_millis()).unwrap_or(u64::MAX),
        _ => 0,
    };
    let body = Body {
        v: VERSION,
        min: OLDEST_READER,
        handoff: letter.handoff.to_string(),
        fence: letter.fence.get(),
        remaining_ms: u64::try_from(letter.remaining.min(MAX_REMAINING).as_millis()).unwrap_or(u64::MAX),
        why,
        stay_ms,
        assumed,
    };
    let body = serde_json::to_vec(&body).expect("numbers and strings are always JSON");
    Envelope {
        from: from.clone(),
        lease: letter.lease.clone(),
        kind: kind.into(),
        body: body.into(),
        trace: letter.trace.clone(),
    }
}

/// Reads a letter. Whatever the bytes are, the answer is a letter or a reason, never a panic.
///
/// # Errors
/// [`Unreadable`]; the reader ignores the letter then.
pub fn open(envelope: &Envelope) -> Result<Letter, Unreadable> {
    let Some(kind) = envelope.kind.strip_prefix(PREFIX) else { return Err(Unreadable::NotOurs) };
    if envelope.body.len() > MAX_BODY_BYTES {
        return Err(Unreadable::TooLarge(envelope.body.len()));
    }
    // First whether it can be read at all: a newer body may have other fields than ours.
    readable(&envelope.body)?;
    if !matches!(kind, "propose" | "ready" | "decline" | "yours" | "assumed" | "abort") {
        return Err(Unreadable::UnknownKind);
    }
    let body: Body =
        serde_json::from_slice(&envelope.body).map_err(|_| Unreadable::Damaged("a field is missing"))?;
    let fence = |number| Fence::new(number).map_err(|_| Unreadable::Damaged("a fence is out of its range"));
    let message = match kind {
        "propose" => Message::Propose { stay: Duration::from_millis(body.stay_ms).min(MAX_STAY) },
        "ready" => Message::Ready,
        "decline" => Message::Decline { why: Arc::from(cut(body.why.as_deref().unwrap_or_default())) },
        "yours" => Message::Yours,
        "assumed" => {
            let assumed = body.assumed.ok_or(Unreadable::Damaged("the new fence is missing"))?;
            Message::Assumed { fence: fence(assumed)? }
        }
        _ => Message::Abort,
    };
    let handoff =
        HandoffId::from_hex(&body.handoff).ok_or(Unreadable::Damaged("the id is not 32 hex digits"))?;
    Ok(Letter {
        handoff,
        lease: envelope.lease.clone(),
        fence: fence(body.fence)?,
        remaining: Duration::from_millis(body.remaining_ms).min(MAX_REMAINING),
        trace: envelope.trace.clone(),
        message,
    })
}

/// Whether a body is for readers of this version.
pub(super) fn readable(body: &[u8]) -> Result<(), Unreadable> {
    let Preface { min } = serde_json::from_slice(body)
        .map_err(|_| Unreadable::Damaged("its body is not JSON with a version"))?;
    if min > VERSION { Err(Unreadable::TooNew { min }) } else { Ok(()) }
}

pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_WHY_BYTES)]
}
