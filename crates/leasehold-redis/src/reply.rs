//! What scripts answer: a word, then what belongs to it.

use crate::{error::Fault, keys::Keys, record::Reader};
use leasehold_core::{Fence, LeaseName, NotHolder};
use redis::Value;

/// An answer of a script, read field by field.
#[derive(Debug)]
pub(crate) struct Reply {
    fields: Vec<Value>,
    key: String,
}

impl Reply {
    /// `key` is named when the answer cannot be read.
    pub(crate) fn new(value: Value, key: String) -> Self {
        let fields = match value {
            Value::Array(fields) => fields,
            single => vec![single],
        };
        Self { fields, key }
    }

    /// What the answer is about, or the damage that the script found.
    pub(crate) fn word(&self) -> Result<&str, Fault> {
        match self.text(0)? {
            "damaged" => Err(damage(self.text(1)?, self.text(2)?)),
            word => Ok(word),
        }
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { key: &self.key }
    }

    pub(crate) fn bytes(&self, at: usize) -> Option<&[u8]> {
        match self.fields.get(at)? {
            Value::BulkString(bytes) => Some(bytes),
            Value::SimpleString(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    pub(crate) fn text(&self, at: usize) -> Result<&str, Fault> {
        let bytes = self.bytes(at).ok_or_else(|| self.reader().damage(format!("answer {at} is no text")))?;
        self.reader().utf8(bytes)
    }

    pub(crate) fn number(&self, at: usize) -> Result<i64, Fault> {
        match self.fields.get(at) {
            Some(Value::Int(number)) => Ok(*number),
            _ => Err(self.reader().damage(format!("answer {at} is no number"))),
        }
    }

    /// Who holds the lease instead, from the fields behind `gone`.
    pub(crate) fn not_holder(&self) -> Result<NotHolder, Fault> {
        let (replica, fence) = (self.text(1)?, self.text(2)?);
        let reader = self.reader();
        let holder = match fence {
            "" => None,
            fence => Some((reader.replica(replica)?, reader.fence(fence)?)),
        };
        // A counter may have been lost or set back: the last term remembers its own.
        let highest: Option<Fence> = reader.counter(self.text(3)?)?.max(reader.counter(self.text(4)?)?);
        Ok(NotHolder { highest: highest.max(holder.as_ref().map(|(_, fence)| *fence)), holder })
    }
}

/// What a script met at a key. What it finds itself begins with a small letter; anything else was said to it by the
/// server, with a code in front as ever, and only a wrong type is damage.
fn damage(key: &str, problem: &str) -> Fault {
    if problem.contains("WRONGTYPE") {
        return Fault::damage(key, "it holds another kind of value");
    }
    if problem.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Fault::damage(key, problem);
    }
    said(problem)
}

/// An error of the server's that a script tells.
pub(crate) fn said(problem: &str) -> Fault {
    let (code, detail) = problem.split_once(' ').unwrap_or((problem, ""));
    redis::make_extension_error(code.to_owned(), Some(detail.to_owned())).into()
}

/// The key of a lease that is named when an answer about it cannot be read.
pub(crate) fn key_of(keys: &Keys, lease: &LeaseName) -> String {
    keys.fence(lease)
}
