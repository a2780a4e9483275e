//! What one seed's world is like.

use super::{Mutant, dice::Dice};
use leasehold_core::Timing;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// One world. Drawn from its seed, so that a few thousand seeds visit calm and rough, small and large ones.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Repeats everything.
    pub seed: u64,
    /// How many replicas contend.
    pub nodes: usize,
    /// The durations of the lease.
    pub timing: Timing,
    /// The time with faults.
    pub chaos: Duration,
    /// The time after them, in which the world must come to rest.
    pub calm: Duration,
    /// What is broken on purpose.
    pub mutant: Option<Mutant>,
    pub(super) weather: Weather,
    /// The largest difference in clock rate between a replica and the store, in millionths. Within the margin.
    pub(super) drift: u64,
    /// Whether claims end with their holder's process.
    pub(super) crash_witness: bool,
    /// From one sudden fault (pause, crash, partition) to the next, on average.
    pub(super) fault_every: Duration,
    /// From one voluntary step down to the next, on average.
    pub(super) step_down_every: Duration,
}

/// What the network does to messages, in chances per thousand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    pub(super) loss: u64,
    pub(super) duplicate: u64,
    pub(super) straggle: u64,
    pub(super) usual: Duration,
    /// How late a straggler or a duplicate may be.
    pub(super) longest: Duration,
}

impl Weather {
    pub(super) const CALM: Self = Self {
        loss: 0,
        duplicate: 0,
        straggle: 0,
        usual: Duration::from_millis(10),
        longest: Duration::ZERO,
    };
}

impl Setup {
    /// The world of a seed.
    #[must_use]
    pub fn drawn(seed: u64, mutant: Option<Mutant>) -> Self {
        // Not the same numbers as the world itself draws.
        let mut dice = Dice::new(!seed);
        let ttl = [500, 2000, 5000][dice.below(3) as usize] * MS;
        let timing = Timing::new(ttl).expect("a valid ttl");
        let rough = dice.below(4);
        let weather = Weather {
            loss: [0, 20, 80, 250][dice.below(1 + rough) as usize],
            duplicate: [0, 20, 100, 200][dice.below(1 + rough) as usize],
            straggle: [0, 20, 100, 200][dice.below(1 + rough) as usize],
            usual: dice.between(MS, ttl / 20),
            longest: dice.between(ttl / 10, ttl * 2),
        };
        Self {
            seed,
            nodes: 2 + dice.below(4) as usize,
            timing,
            chaos: ttl * 14,
            calm: bound(&timing) + ttl * 4,
            mutant,
            weather,
            drift: [0, 1_000, 20_000][dice.below(3) as usize],
            crash_witness: dice.per_mille(300),
            fault_every: dice.between(ttl / 2, ttl * 3),
            step_down_every: dice.between(ttl, ttl * 6),
        }
    }

    /// The bound within which a vacancy is filled once all faults have ended: what a candidate may still believe to be
    /// held (one ttl), and the longest back-off of a campaign.
    #[must_use]
    pub fn bound(&self) -> Duration {
        bound(&self.timing)
    }
}

fn bound(timing: &Timing) -> Duration {
    timing.ttl() + Duration::from_secs(5)
}
