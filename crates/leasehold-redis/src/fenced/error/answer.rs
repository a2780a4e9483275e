//! What the script around a write answers.

use super::{FencedError, said};
use leasehold_core::{Fence, Stale};
use redis::Value;

/// Reads an answer: what the write gave, or why it was not made.
pub(in crate::fenced) fn read(
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
        ("damaged", _) => FencedError::Damaged { mark: mark.to_owned(), problem: told },
        ("mark", _) => said::of_the_mark(&told, mark),
        ("work", _) => said::of_the_work(&told),
        _ => unexpected(),
    })
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}
