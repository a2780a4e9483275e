//! A world in virtual time: candidates on the real machines, over the real table, through a bad network.
//!
//! Each seed draws a world (how many replicas, how long the lease, how bad the weather), lives through a time of
//! faults, heals, and must then come to rest. Messages are late, lost and doubled; processes are paused, with their
//! clocks running on, and crash; clocks differ in rate. What is driven is the code that ships:
//! [`Campaign`](leasehold_core::campaign::Campaign), [`Tenure`](leasehold_core::tenure::Tenure) and
//! [`Table`](leasehold_core::memory::Table).
//!
//! The history of each run is checked by [`crate::history`]: I1 to I7, I9 and overlaps at any time, I10 after the healing.
//!
//! ```
//! use leasehold_testkit::simulation::{Mutant, run};
//!
//! run(7, None).check().expect("seed 7 keeps the invariants");
//! let same = run(7, None);
//! assert_eq!(run(7, None).history, same.history, "a seed repeats its world");
//! ```

mod clock;
mod dice;
mod mutant;
mod node;
mod queue;
mod resource;
mod setup;
mod store;
mod sweep;
mod world;

pub use mutant::Mutant;
pub use setup::Setup;
pub use sweep::{Sweep, sweep};

use crate::history::{Event, Traffic, Violation, i10_progress, safety};
use std::fmt;

/// One world, lived through.
#[derive(Debug)]
pub struct Run {
    /// Its world.
    pub setup: Setup,
    /// What happened.
    pub history: Vec<Event>,
}

/// A run in which an invariant was broken.
#[derive(Debug)]
pub struct Failure {
    /// The seed that repeats it.
    pub seed: u64,
    /// What was broken.
    pub violations: Vec<Violation>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, violations } = self;
        write!(f, "seed {seed} broke {} invariants; replay it with LEASEHOLD_SEED={seed}", violations.len())?;
        violations.iter().take(5).try_for_each(|violation| write!(f, "\n{violation}"))
    }
}

impl std::error::Error for Failure {}

/// Lives through the world of a seed.
#[must_use]
pub fn run(seed: u64, mutant: Option<Mutant>) -> Run {
    let mut world = world::World::new(Setup::drawn(seed, mutant));
    world.run();
    Run { setup: world.setup, history: world.history }
}

impl Run {
    /// Checks every invariant, and counts what happened.
    ///
    /// # Errors
    /// [`Failure`] names the seed and shows the events.
    pub fn check(&self) -> Result<Traffic, Failure> {
        let until = (self.setup.chaos + self.setup.calm).as_nanos() as u64;
        let mut violations = safety(&self.history);
        violations.extend(i10_progress::check(&self.history, self.setup.bound(), until));
        if violations.is_empty() {
            Ok(Traffic::of(&self.history))
        } else {
            Err(Failure { seed: self.setup.seed, violations })
        }
    }
}
