//! The fence token: the number that a protected resource compares.

use std::{fmt, num::NonZeroU64};

/// The number issued with a claim, strictly increasing per lease name.
///
/// A resource remembers the highest fence it accepted and refuses lower ones; that alone is safe without any
/// assumption about clocks. Gaps are allowed. It is an order, not a secret: predictable by design.
///
/// Range: 1 to 2^53 − 1, since some stores compare numbers as IEEE doubles (Redis' Lua).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(NonZeroU64);

/// The number was not a fence. Nothing was compared or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a fence token: tokens are whole numbers from 1 to {max}", max = Fence::MAX)]
pub struct FenceRangeError(
    /// The number that was given.
    pub u64,
);

impl Fence {
    /// The first fence of a name.
    pub const FIRST: Self = Self(NonZeroU64::MIN);
    /// The highest fence, 2^53 − 1. At a thousand terms a second it lasts 285,000 years.
    pub const MAX: Self = Self(NonZeroU64::new((1 << 53) - 1).expect("not zero"));

    /// Checks the range.
    ///
    /// # Errors
    /// [`FenceRangeError`] for 0 and for numbers above [`Fence::MAX`].
    pub fn new(number: u64) -> Result<Self, FenceRangeError> {
        NonZeroU64::new(number).map(Self).filter(|f| *f <= Self::MAX).ok_or(FenceRangeError(number))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The next fence above both `counter` (what the store remembers) and `floor` (what the bidder remembers), or
    /// `None` at [`Fence::MAX`]: a store then refuses, it never wraps.
    #[must_use]
    pub fn after(counter: Option<Self>, floor: Option<Self>) -> Option<Self> {
        match counter.max(floor) {
            None => Some(Self::FIRST),
            Some(highest) => Self::new(highest.get() + 1).ok(),
        }
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl TryFrom<u64> for Fence {
    type Error = FenceRangeError;
    fn try_from(number: u64) -> Result<Self, FenceRangeError> {
        Self::new(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_fence_is_above_the_store_and_above_whoever_remembers_more() {
        let f = |n| Fence::new(n).ok();
        assert_eq!(Fence::after(None, None), f(1));
        assert_eq!(Fence::after(f(7), None), f(8));
        assert_eq!(Fence::after(None, f(41)), f(42), "a store that lost its counter is repaired");
        assert_eq!(Fence::after(f(7), f(3)), f(8));
        assert_eq!(Fence::after(f(Fence::MAX.get()), None), None, "exhausted, never wrapped");
    }

    #[test]
    fn damaged_numbers_are_not_fences() {
        for n in [0, 1 << 53, u64::MAX] {
            assert_eq!(Fence::new(n), Err(FenceRangeError(n)));
        }
    }
}
