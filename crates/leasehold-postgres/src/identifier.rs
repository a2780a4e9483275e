//! Names of tables and columns that come from a program's configuration, quoted.

use std::fmt;

/// PostgreSQL cuts longer ones, silently.
const MAX_BYTES: usize = 63;

/// The name of a table or a column: a letter or `_` of ASCII, then letters, digits and `_`; at most 63 bytes.
///
/// It is always quoted, so capitals count: an unquoted `CREATE TABLE Jobs` made a table `jobs`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identifier(String);

/// The name of a table, with or without its schema: `jobs`, or `billing.jobs`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    schema: Option<Identifier>,
    table: Identifier,
}

/// Why a name was refused. Nothing was sent to the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` cannot be the name of a table or a column here: a letter or `_`, then letters, digits and `_`, all of ASCII, and at most \
     63 bytes",
    .0.escape_default()
)]
pub struct IdentifierError(
    /// What was given.
    pub String,
);

impl Identifier {
    /// Checks a name.
    ///
    /// # Errors
    /// [`IdentifierError`] says what is allowed.
    pub fn new(name: &str) -> Result<Self, IdentifierError> {
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let rest = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if first && rest && name.len() <= MAX_BYTES {
            Ok(Self(name.to_owned()))
        } else {
            Err(IdentifierError(name.to_owned()))
        }
    }

    /// The name, unquoted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TableName {
    /// Checks a name, which may have one dot.
    ///
    /// # Errors
    /// [`IdentifierError`] says what is allowed of each part.
    pub fn new(name: &str) -> Result<Self, IdentifierError> {
        Ok(match name.split_once('.') {
            Some((schema, table)) => {
                Self { schema: Some(Identifier::new(schema)?), table: Identifier::new(table)? }
            }
            None => Self { schema: None, table: Identifier::new(name)? },
        })
    }
}

/// Quoted, as a statement needs it.
impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// Quoted, as a statement needs it.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.table),
            None => self.table.fmt(f),
        }
    }
}

macro_rules! from_text {
    ($($name:ident),*) => {$(
        impl TryFrom<&str> for $name {
            type Error = IdentifierError;
            fn try_from(name: &str) -> Result<Self, IdentifierError> {
                Self::new(name)
            }
        }
    )*};
}
from_text!(Identifier, TableName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_get_into_a_statement() {
        assert_eq!(Identifier::new("Jobs_2").unwrap().to_string(), "\"Jobs_2\"");
        assert_eq!(TableName::new("billing.jobs").unwrap().to_string(), "\"billing\".\"jobs\"");
        let long = "a".repeat(64);
        for bad in ["", "2jobs", "jobs; DROP TABLE x", "a\"b", "é", "a b", "a\0", &long, "a.b"] {
            let error = Identifier::new(bad).unwrap_err();
            assert!(error.to_string().contains("letters, digits"), "{error}");
        }
        for bad in ["a.b.c", ".b", "a.", "a.b;c"] {
            assert!(TableName::new(bad).is_err(), "{bad}");
        }
    }
}
