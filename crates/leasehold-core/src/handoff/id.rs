//! Which handoff a letter belongs to.

use std::fmt;

/// A 128-bit nonce that tells one handoff from every other. Not a secret: letters, events and spans carry it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HandoffId(u128);

impl HandoffId {
    /// A fresh id from the operating system's random number generator.
    ///
    /// # Panics
    /// If that generator fails, which no supported system does after boot.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system's random number generator failed");
        Self(u128::from_be_bytes(bytes))
    }

    /// An id from its number.
    #[must_use]
    pub const fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// Reads the 32 lower-case hex digits that `Display` writes; `None` for anything else.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if text.len() != 32 || !plain {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

/// All 32 lower-case hex digits.
impl fmt::Display for HandoffId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for HandoffId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
