//! Chance that a seed repeats, on every machine and with every version of every crate.

use leasehold_core::AttemptId;
use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood 2014). Our own, so that the seed of an old failure still replays it.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not zero. The bias of the remainder is far below what a simulation can see.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// True in so many of a thousand cases.
    pub(super) const fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    /// From `least` up to `most`.
    pub(super) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = most.saturating_sub(least).as_nanos() as u64;
        least + Duration::from_nanos(self.below(span + 1))
    }

    pub(super) fn attempt(&mut self) -> AttemptId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.number().to_le_bytes());
        bytes[8..].copy_from_slice(&self.number().to_le_bytes());
        AttemptId::from_bytes(bytes)
    }
}
