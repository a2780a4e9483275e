//! Names of leases, replicas and resources: what is allowed, and the error that says why not.

use std::{fmt, sync::Arc};

/// The longest name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 200;

/// Why a name was refused. Nothing was sent to any store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name had no bytes.
    #[error("a {what} name must not be empty: give it 1 to {MAX_NAME_BYTES} bytes")]
    Empty {
        /// What was to be named.
        what: &'static str,
    },
    /// The name was longer than [`MAX_NAME_BYTES`].
    #[error(
        "a {what} name has at most {MAX_NAME_BYTES} bytes of UTF-8, this one has {bytes}: shorten or hash it"
    )]
    TooLong {
        /// What was to be named.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The name held a control character (Unicode category Cc, which includes NUL, tab and newline).
    #[error("a {what} name must not hold control characters: found U+{:04X} at byte {at}", u32::from(*found))]
    Control {
        /// What was to be named.
        what: &'static str,
        /// The character.
        found: char,
        /// Its byte offset.
        at: usize,
    },
}

fn check(what: &'static str, text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong { what, bytes: text.len() });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, found)) => Err(NameError::Control { what, found, at }),
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name: 1 to [`MAX_NAME_BYTES`] bytes of UTF-8 without control characters.
            ///
            /// Names are compared byte by byte: case, spaces and Unicode normal forms are kept, and `é` as
            /// one code point is another name than `e` with a combining accent.
            ///
            /// # Errors
            /// [`NameError`] says which rule was broken.
            pub fn new(text: impl Into<Arc<str>>) -> Result<Self, NameError> {
                let text = text.into();
                check($what, &text)?;
                Ok(Self(text))
            }

            /// The name as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NameError;
            fn try_from(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl From<&$name> for $name {
            fn from(name: &$name) -> Self {
                name.clone()
            }
        }
    };
}

name! {
    /// The name of a lease: the duty that one replica owns at a time.
    LeaseName, "lease"
}
name! {
    /// The name of a running process, for people to read.
    ///
    /// It is a label, not a proof: two processes with one id are told apart by the attempt id of their claims.
    ReplicaId, "replica"
}
name! {
    /// The name of a resource that checks fences.
    ResourceName, "resource"
}

impl From<std::convert::Infallible> for NameError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl ReplicaId {
    /// An id of the form `process id-8 hex digits`, for a process that was given none.
    ///
    /// # Panics
    /// If the operating system's random number generator fails, as [`AttemptId::random`](crate::AttemptId::random).
    #[must_use]
    pub fn generate() -> Self {
        let attempt = crate::AttemptId::random().to_hex();
        Self(format!("{}-{}", std::process::id(), &attempt[..8]).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_ordinary() {
        for text in [
            " ",
            "/",
            "//a",
            "a/",
            "../x",
            "file:///v",
            "é",
            "e\u{301}",
            "🦀",
            "%2F",
            "{tag}x",
            "*",
            "SELECT;",
            "'\"",
            &"x".repeat(200),
        ] {
            assert_eq!(LeaseName::new(text).map(|n| n.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_no_store_can_keep_is_refused_with_its_reason() {
        assert_eq!(LeaseName::new(""), Err(NameError::Empty { what: "lease" }));
        assert_eq!(LeaseName::new("é".repeat(101)), Err(NameError::TooLong { what: "lease", bytes: 202 }));
        for (text, found, at) in
            [("a\0", '\0', 1), ("\n", '\n', 0), ("é\t", '\t', 2), ("a\u{85}", '\u{85}', 1)]
        {
            assert_eq!(LeaseName::new(text), Err(NameError::Control { what: "lease", found, at }));
        }
    }

    #[test]
    fn identities_are_compared_exactly() {
        let ids: Vec<_> =
            ["dev", "dev-server", "dev_", "Dev", "dev "].map(|id| ReplicaId::new(id).unwrap()).into();
        for (i, a) in ids.iter().enumerate() {
            assert_eq!(ids.iter().filter(|b| *b == a).count(), 1, "{i}");
        }
    }
}
