//! Keys of advisory locks: which number a name is.

use leasehold_core::{LeaseName, ResourceName};
use sha2::{Digest, Sha256};
use std::{fmt, sync::Arc};

/// What tells our names from those of every other program that hashes names to advisory locks.
const DOMAIN: &[u8] = b"leasehold advisory key 1\0";

/// The key of an advisory lock.
///
/// PostgreSQL knows advisory locks by numbers: one of 64 bits, or two of 32, which are never equal to one of 64. They belong
/// to one database, and every program in it shares them.
///
/// # From names
/// A name becomes the first eight bytes, big-endian, of the SHA-256 of `leasehold advisory key 1`, a zero byte, and the name
/// in UTF-8. Two names that meet in one key would keep each other out, and neither would ever run with the other: that
/// costs time, never safety. The odds are those of 64 bits: one in 37 million million that any two of 1,000 names meet, one in 37
/// million for a million names.
///
/// Small numbers that a program has chosen itself (1, 2, 42) are as unlikely to be met.
///
/// ```
/// use leasehold_postgres::Key;
///
/// assert_eq!(Key::named("invoice-run").to_string(), "invoice-run (advisory key 2644414337460672441)");
/// assert_eq!(Key::from(42), Key::from(42));
/// assert_ne!(Key::from(42), Key::from((0, 42)), "PostgreSQL keeps the two kinds apart");
/// ```
#[derive(Clone)]
pub struct Key {
    number: Number,
    name: Option<Arc<str>>,
}

/// What PostgreSQL locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Number {
    One(i64),
    Two(i32, i32),
}

impl Key {
    /// The key of a name: any text, of any length.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let hash = Sha256::new().chain_update(DOMAIN).chain_update(name).finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        Self { number: Number::One(i64::from_be_bytes(first)), name: Some(name.into()) }
    }

    /// The name it was made of, if any.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What it is without its name: `advisory key 42`, or `advisory key (1, 42)`.
    #[must_use]
    pub fn number(&self) -> String {
        match self.number {
            Number::One(key) => format!("advisory key {key}"),
            Number::Two(one, two) => format!("advisory key ({one}, {two})"),
        }
    }

    /// The arguments of a lock function, as text. They are numbers: nothing that a user wrote gets into a statement.
    pub(crate) fn args(&self) -> String {
        match self.number {
            Number::One(key) => format!("({key})::bigint"),
            Number::Two(one, two) => format!("({one})::integer, ({two})::integer"),
        }
    }

    /// The lock as `pg_locks` shows it: `classid`, `objid` and `objsubid`.
    pub(crate) const fn in_pg_locks(&self) -> (u32, u32, i16) {
        match self.number {
            Number::One(key) => {
                let [a, b, c, d, e, f, g, h] = key.to_be_bytes();
                (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]), 1)
            }
            Number::Two(one, two) => (one.cast_unsigned(), two.cast_unsigned(), 2),
        }
    }
}

/// Keys are equal if they are one lock, whatever they were made of.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl From<&String> for Key {
    fn from(name: &String) -> Self {
        Self::named(name)
    }
}

impl From<&LeaseName> for Key {
    fn from(name: &LeaseName) -> Self {
        Self::named(name.as_str())
    }
}

impl From<&ResourceName> for Key {
    fn from(name: &ResourceName) -> Self {
        Self::named(name.as_str())
    }
}

impl From<&Self> for Key {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

impl From<i64> for Key {
    fn from(key: i64) -> Self {
        Self { number: Number::One(key), name: None }
    }
}

impl From<(i32, i32)> for Key {
    fn from((one, two): (i32, i32)) -> Self {
        Self { number: Number::Two(one, two), name: None }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.number()),
            None => f.write_str(&self.number()),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_collide_in_32_bits_are_different_keys() {
        // B53: crc32("plumless") = crc32("buckeroo"); hashtext of the two others is equal on PostgreSQL 15.
        assert_ne!(Key::named("plumless"), Key::named("buckeroo"));
        assert_ne!(Key::named("lease-55891"), Key::named("lease-149086"));
    }

    #[test]
    fn what_a_key_is_does_not_change_between_versions() {
        // Two versions of a program must not lock past each other. As `printf 'leasehold advisory key 1\0a' | sha256sum`.
        assert_eq!(Key::named("a"), Key::from(0x2f4c_e660_e015_273d));
    }

    #[test]
    fn a_key_is_found_again_among_the_locks_of_the_server() {
        assert_eq!(Key::from(-1).in_pg_locks(), (u32::MAX, u32::MAX, 1));
        assert_eq!(Key::from(1 << 32).in_pg_locks(), (1, 0, 1));
        assert_eq!(Key::from((-1, 7)).in_pg_locks(), (u32::MAX, 7, 2));
    }
}
