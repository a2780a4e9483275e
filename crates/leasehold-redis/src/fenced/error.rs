//! Why a write behind a fence was not made.

mod answer;
mod said;

pub(super) use answer::read;

use leasehold_core::{Fence, Stale};
use redis::RedisError;

/// Why a write was not made, or is not known to have been.
///
/// Where the server refuses a single command, nothing was written. Where it refuses a command of a [script of the user's
/// own](crate::FencedScript), what the script had written before stays: Redis takes nothing back.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FencedError {
    /// A higher token was accepted before: the lease of this writer is over. Nothing was written.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The token is further above the mark than it may be. Nothing was written.
    #[error(
        "fence {presented} is more than {max_jump} above {highest}, the highest that {mark} has seen; nothing was written: \
         check where the fence is from"
    )]
    TooFar {
        /// The token of this write.
        presented: Fence,
        /// The mark.
        highest: Fence,
        /// How far it may jump.
        max_jump: u64,
        /// The key of the mark.
        mark: String,
    },
    /// What is kept at the mark is no fence. Nothing was written, and it was left as it is.
    #[error(
        "what is kept at {mark} is no fence mark ({problem}); nothing was written: look at it, then remove or repair it"
    )]
    Damaged {
        /// The key of the mark.
        mark: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The key that was to be written holds another kind of value. It was left as it is.
    #[error(
        "the key of the fenced write holds another kind of value ({said}): look at it, or write elsewhere"
    )]
    WrongType {
        /// The server's words.
        said: String,
    },
    /// The user of this connection lacks a right.
    #[error(
        "the fenced write was denied ({said}): give the user +eval +evalsha +get +set, the command of the write, and the \
         keys of the mark and of the data"
    )]
    Denied {
        /// The server's words.
        said: String,
    },
    /// The server is at its memory limit.
    #[error(
        "the fenced write needs memory, and the server is at its limit ({said}): raise maxmemory, or make room"
    )]
    Full {
        /// The server's words.
        said: String,
    },
    /// The server takes no writes now: it is a replica, cannot write its file, or has too few replicas.
    #[error("the server takes no writes now ({said}): look for its primary, or mend it, and write again")]
    NotWriting {
        /// The server's words.
        said: String,
    },
    /// The script of the user's own failed, or the server refused one of its commands as wrong.
    #[error("the script behind the fence failed: {said}")]
    Script {
        /// Its words, or the server's.
        said: String,
    },
    /// The connection was lost, or there was no answer in time: nobody knows whether the write was made. To make it again
    /// under the same token is safe as far as the fence is concerned.
    #[error("the answer to the fenced write was lost, it may have been made: {0}")]
    Unknown(#[source] RedisError),
    /// The server refused for another reason, or cannot be reached. Nothing was written.
    #[error("the fenced write failed: {0}{advice}", advice = advice(_0))]
    Redis(#[source] RedisError),
}

impl From<RedisError> for FencedError {
    fn from(error: RedisError) -> Self {
        said::by(error)
    }
}

/// What to do about an error that the server's own words leave open.
fn advice(error: &RedisError) -> &'static str {
    if error.code() == Some("CROSSSLOT") {
        "; give the mark and the data one hash tag, such as {prices}:fence and {prices}:all"
    } else {
        ""
    }
}
