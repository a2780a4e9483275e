//! Bids and claims: wanting one acquisition, and being it.

use crate::{Fence, LeaseName, ReplicaId, TraceContext};
use std::{fmt, time::Duration};

/// A 128-bit nonce that tells one acquisition from every other, whatever names people chose.
///
/// Same attempt id ⇒ same answer: an acquire whose reply was lost is settled by asking again with the same id.
/// It is the only secret of a claim: `Debug` and `Display` show 8 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId([u8; 16]);

impl AttemptId {
    /// A fresh id from the operating system's random number generator.
    ///
    /// # Panics
    /// If that generator fails, which no supported system does after boot; without it no claim could be told
    /// from another.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system's random number generator failed");
        Self(bytes)
    }

    /// An id from its 16 bytes, as a store kept them.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// All 32 lower-case hex digits, for stores that keep text.
    #[must_use]
    pub fn to_hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = self.0.iter().flat_map(|b| [b >> 4, b & 15]);
        digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
    }

    /// Reads what [`AttemptId::to_hex`] wrote; `None` for anything else.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 16];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}…")
    }
}

/// What a candidate asks of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Bid {
    /// The lease wanted.
    pub name: LeaseName,
    /// Who asks, for people to read.
    pub replica: ReplicaId,
    /// The nonce of this attempt. A new attempt takes a new one; a repetition after a lost reply the same.
    pub attempt: AttemptId,
    /// How long the claim lives without renewal.
    pub ttl: Duration,
    /// The highest fence of this name that the candidate has ever seen. The store issues a fence above it, and so
    /// is repaired if it lost its counter.
    pub floor: Option<Fence>,
    /// Asks the store to end the claim as soon as the operating system ends this process (see
    /// [`Traits::crash_witness`](crate::Traits)); ignored by a store that cannot.
    pub crash_witness: bool,
    /// The trace in which the claim is asked for; kept with it.
    pub trace: TraceContext,
}

/// One acquisition: who holds which lease under which fence. Renew and release always name the whole claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The lease held.
    pub name: LeaseName,
    /// The holder, for people to read.
    pub replica: ReplicaId,
    /// The nonce of the acquisition.
    pub attempt: AttemptId,
    /// The fence issued with it.
    pub fence: Fence,
}

impl Bid {
    /// The claim that this bid becomes when it is granted under `fence`.
    #[must_use]
    pub fn granted(&self, fence: Fence) -> Claim {
        Claim { name: self.name.clone(), replica: self.replica.clone(), attempt: self.attempt, fence }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lease {} under fence {} for replica {}", self.name, self.fence, self.replica)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_id_survives_its_hex_form_and_shows_only_a_quarter() {
        let id = AttemptId::random();
        assert_eq!(AttemptId::from_hex(&id.to_hex()), Some(id));
        assert_eq!(format!("{id}").len(), 8);
        assert!(!format!("{id:?}").contains(&id.to_hex()));
        for damaged in ["", "zz", &"g".repeat(32), &"é".repeat(16), &"a".repeat(33)] {
            assert_eq!(AttemptId::from_hex(damaged), None);
        }
    }
}
