//! One command of a script: a verb, then words and `key=value` pairs, each of which must be understood.

use super::show::{MS, ZERO};
use leasehold_core::{Fence, Moment, ReplicaId, StoreError, StoreErrorKind, Verb};
use std::{fmt::Display, str::FromStr, time::Duration};

/// A line such as `failed #2 error=unreachable at=1850`.
pub(crate) struct Command {
    pub(crate) verb: String,
    // What nobody has taken yet.
    rest: Vec<(String, Option<String>)>,
    /// When it happens, from `at=…`.
    pub(crate) at: Option<Moment>,
}

/// More steps of one `store …` than any script reads.
pub(crate) const MOST_STEPS: usize = 300;

/// Why a script cannot be played.
pub(crate) type Mistake = String;

impl Command {
    pub(crate) fn parse(line: &str) -> Result<Self, Mistake> {
        let mut words = line.split_whitespace();
        let verb = words.next().ok_or("an empty command")?.to_owned();
        let pair = |word: &str| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        };
        let mut command = Self { verb, rest: words.map(pair).collect(), at: None };
        command.at = command.ms("at")?.map(|d| ZERO.after(d));
        Ok(command)
    }

    /// Takes the value of `key`.
    pub(crate) fn value<T: FromStr<Err: Display>>(&mut self, key: &str) -> Result<Option<T>, Mistake> {
        let Some(at) = self.rest.iter().position(|(k, v)| k == key && v.is_some()) else {
            return Ok(None);
        };
        let text = self.rest.remove(at).1.unwrap_or_default();
        text.parse().map(Some).map_err(|e| format!("{key}={text}: {e}"))
    }

    /// Takes milliseconds; `max` is the longest duration there is.
    pub(crate) fn ms(&mut self, key: &str) -> Result<Option<Duration>, Mistake> {
        let text = self.value::<String>(key)?;
        let parse = |text: String| match text.as_str() {
            "max" => Ok(Duration::MAX),
            _ => text.parse::<u32>().map(|n| MS * n).map_err(|e| format!("{key}={text}: {e}")),
        };
        text.map(parse).transpose()
    }

    pub(crate) fn must<T>(key: &str, found: Option<T>) -> Result<T, Mistake> {
        found.ok_or_else(|| format!("{key}=… is missing"))
    }

    pub(crate) fn fence(&mut self, key: &str) -> Result<Option<Fence>, Mistake> {
        let number = self.value::<u64>(key)?;
        number.map(|n| Fence::new(n).map_err(|e| e.to_string())).transpose()
    }

    pub(crate) fn replica(&mut self, key: &str) -> Result<Option<ReplicaId>, Mistake> {
        let text = self.value::<String>(key)?;
        text.map(|t| ReplicaId::new(t).map_err(|e| e.to_string())).transpose()
    }

    /// Takes the word at the front, if it is no pair.
    pub(crate) fn word(&mut self) -> Option<String> {
        let at = self.rest.iter().position(|(_, value)| value.is_none())?;
        Some(self.rest.remove(at).0)
    }

    /// Takes the number of an attempt, as in `#2`.
    pub(crate) fn attempt(&mut self) -> Result<Option<usize>, Mistake> {
        let Some(at) = self.rest.iter().position(|(word, v)| word.starts_with('#') && v.is_none()) else {
            return Ok(None);
        };
        let word = self.rest.remove(at).0;
        word[1..].parse().map(Some).map_err(|e| format!("{word}: {e}"))
    }

    /// Takes `error=…`, by default `unreachable`.
    pub(crate) fn error(&mut self, verb: Verb) -> Result<StoreError, Mistake> {
        let word = self.value::<String>("error")?.unwrap_or_else(|| "unreachable".to_owned());
        let kind = match word.as_str() {
            "unreachable" => StoreErrorKind::Unreachable,
            "locked" => StoreErrorKind::Locked(MS * 100),
            "timed-out" => StoreErrorKind::TimedOut(MS * 100),
            "full" => StoreErrorKind::Full,
            "denied" => StoreErrorKind::Denied,
            "closed" => StoreErrorKind::Closed,
            "corrupt" => StoreErrorKind::Corrupt { key: "k".into(), problem: "not ours".into() },
            "spent" => StoreErrorKind::SpentAttempt,
            "read-only" => StoreErrorKind::ReadOnly,
            "not-writing" => StoreErrorKind::NotWriting("too few replicas".into()),
            "unwitnessed" => StoreErrorKind::Unwitnessed,
            "foreign" => StoreErrorKind::Foreign { found: "a photo album".into() },
            _ => return Err(format!("error={word}: no such error")),
        };
        Ok(StoreError::new(kind, verb, "memory:"))
    }

    /// What was not understood is a mistake of the script.
    pub(crate) fn end(self) -> Result<(), Mistake> {
        match self.rest.first() {
            Some((word, _)) => Err(format!("{}: {word} is not understood", self.verb)),
            None => Ok(()),
        }
    }
}
