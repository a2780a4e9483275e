//! The name of the schema that a store lives in.

use super::refuse;
use leasehold_core::StoreErrorKind;
use std::{fmt, sync::Arc};

pub(super) const DEFAULT: &str = "leasehold";

/// The longest name, in bytes: what PostgreSQL makes of a longer identifier is another one.
const MAX_BYTES: usize = 48;

/// The name of a schema: a lower-case letter or `_`, then letters, digits and `_`, at most 48 of them, and none that begins
/// with `pg_`, which the server keeps for itself. It stands in the text of statements, so that nothing else is taken.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Schema(Arc<str>);

impl Schema {
    /// Checks a name.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] says what a name may be.
    pub fn new(name: &str) -> Result<Self, StoreErrorKind> {
        let first = |c: char| c.is_ascii_lowercase() || c == '_';
        let fits = name.starts_with(first)
            && name.len() <= MAX_BYTES
            && name.chars().all(|c| first(c) || c.is_ascii_digit())
            && !name.starts_with("pg_");
        if fits && name != "information_schema" {
            return Ok(Self(name.into()));
        }
        refuse(format!(
            "a schema has 1 to {MAX_BYTES} lower-case letters, digits and underscores, begins with no digit and not with \
             pg_; {name:?} does not do"
        ))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as it stands in statements.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self(DEFAULT.into())
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.0)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_identifiers_name_a_schema() {
        for good in ["leasehold", "_x", "a1_b2", &"a".repeat(48)] {
            assert_eq!(Schema::new(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "1a",
            "A",
            "a-b",
            "a b",
            "a\"b",
            "a;drop",
            "ä",
            "a.b",
            "pg_x",
            "information_schema",
            &"a".repeat(49),
        ] {
            assert!(Schema::new(bad).is_err(), "{bad}");
        }
    }
}
