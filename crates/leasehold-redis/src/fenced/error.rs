//! Why a write behind a fence was not made.

use leasehold_core::{Fence, Stale};
use redis::{RedisError, Value};

/// Why a write was not made, or is not known to have been.
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
    /// The server refused, or cannot be reached.
    ///
    /// After a lost connection or a timeout nobody knows whether the write was made. To make it again under the same
    /// token is safe as far as the fence is concerned.
    #[error("the fenced write failed: {0}{advice}", advice = advice(_0))]
    Redis(#[source] RedisError),
}

impl From<RedisError> for FencedError {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
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

/// What a script answered.
pub(super) fn read(
    answer: Value,
    presented: Fence,
    mark: &str,
    max_jump: Option<u64>,
) -> Result<Value, FencedError> {
    let unexpected =
        || FencedError::Damaged { mark: mark.to_owned(), problem: "unexpected answer".to_owned() };
    let Value::Array(fields) = answer else { return Err(unexpected()) };
    let mut fields = fields.into_iter();
    let word = fields.next().and_then(text).ok_or_else(unexpected)?;
    let rest = fields.next();
    if word == "done" {
        return Ok(rest.unwrap_or(Value::Nil));
    }
    let told = rest.and_then(text).unwrap_or_default();
    let highest = || told.parse().ok().and_then(|number| Fence::new(number).ok()).ok_or_else(unexpected);
    Err(match (&*word, max_jump) {
        ("stale", _) => Stale { presented, highest: highest()? }.into(),
        ("jump", Some(max_jump)) => {
            FencedError::TooFar { presented, highest: highest()?, max_jump, mark: mark.to_owned() }
        }
        ("damaged", _) => {
            let wrong_type = told.contains("WRONGTYPE");
            let problem = if wrong_type { "it holds another kind of value".to_owned() } else { told };
            FencedError::Damaged { mark: mark.to_owned(), problem }
        }
        _ => unexpected(),
    })
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}
