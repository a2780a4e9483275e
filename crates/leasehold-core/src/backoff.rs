//! Growing, jittered delays that a seed repeats.

mod retry;

pub use retry::{Retry, until};

use std::time::Duration;

/// Delays that double from `base` to `cap`, each drawn between half and the whole of its step, so that many
/// candidates that failed together do not return together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    failures: u32,
    seed: u64,
}

impl Backoff {
    /// Delays between `base` and `cap`. Equal seeds give equal delays.
    #[must_use]
    pub const fn new(base: Duration, cap: Duration, seed: u64) -> Self {
        Self { base, cap, failures: 0, seed }
    }

    /// The next delay.
    #[must_use]
    pub fn next_delay(&mut self) -> Duration {
        let step =
            self.base.saturating_mul(1u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(self.cap);
        self.failures = self.failures.saturating_add(1);
        let half = step / 2;
        half + self.jitter(half)
    }

    /// A delay between zero and `most`, drawn from the same seed.
    #[must_use]
    pub fn jitter(&mut self, most: Duration) -> Duration {
        // SplitMix64 (Steele, Lea, Flood 2014): one multiplication chain, good enough to spread clients.
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let fraction = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        most.mul_f64(fraction)
    }

    /// Starts over from `base`, after a success.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_stay_within_their_step() {
        let (base, cap) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = Backoff::new(base, cap, 7);
        for n in 0..80u32 {
            let step = base.saturating_mul(1u32.checked_shl(n).unwrap_or(u32::MAX)).min(cap);
            let delay = backoff.next_delay();
            assert!(delay >= step / 2 && delay <= step, "{n}: {delay:?} of {step:?}");
        }
        backoff.reset();
        assert!(backoff.next_delay() <= base);
    }

    #[test]
    fn a_seed_repeats_its_delays_and_another_does_not() {
        let delays = |seed| {
            let mut b = Backoff::new(Duration::from_millis(100), Duration::from_secs(5), seed);
            [b.next_delay(), b.next_delay(), b.next_delay()]
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
    }
}
