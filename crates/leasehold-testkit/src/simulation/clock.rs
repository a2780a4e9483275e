//! Each replica's own clock: another origin, another rate.

use leasehold_core::Moment;

const MILLION: u128 = 1_000_000;

/// A clock that runs at so many millionths of the store's rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct SkewedClock {
    pub(super) origin: u64,
    pub(super) rate: u64,
}

impl SkewedClock {
    /// What this clock shows at a time of the world.
    pub(super) fn shows(self, world: u64) -> Moment {
        let local = u128::from(world) * u128::from(self.rate) / MILLION;
        Moment::from_nanos(self.origin + local as u64)
    }

    /// The first time of the world at which this clock shows `moment`.
    pub(super) fn reaches(self, moment: Moment) -> u64 {
        let local = u128::from(moment.as_nanos().saturating_sub(self.origin));
        (local * MILLION).div_ceil(u128::from(self.rate)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_reaches_a_moment_no_sooner_than_it_shows_it() {
        for rate in [980_000, 1_000_000, 1_000_001, 1_020_000] {
            let clock = SkewedClock { origin: 12_345, rate };
            for world in [0, 1, 7, 999_999_999, 1_000_000_001, 86_400_000_000_000] {
                let reached = clock.reaches(clock.shows(world));
                assert!(reached <= world && clock.shows(reached) >= clock.shows(world), "{rate} {world}");
            }
        }
    }
}
