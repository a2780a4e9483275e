//! Many seeds.

use super::{Failure, Mutant, run};
use crate::history::Traffic;
use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// What many seeds came to.
#[derive(Debug, Default)]
pub struct Sweep {
    /// How many seeds were lived through.
    pub seeds: u64,
    /// What happened in all of them.
    pub traffic: Traffic,
    /// The failures of the seeds that broke something, lowest seed first.
    pub failures: Vec<Failure>,
}

/// Lives through every seed of a range, on all cores; stops soon after the first failure.
#[must_use]
pub fn sweep(seeds: Range<u64>, mutant: Option<Mutant>) -> Sweep {
    let next = AtomicU64::new(seeds.start);
    let result = Mutex::new(Sweep::default());
    let workers = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let checked = run(seed, mutant).check();
                    let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
                    result.seeds += 1;
                    match checked {
                        Ok(traffic) => result.traffic += traffic,
                        Err(failure) => {
                            result.failures.push(failure);
                            next.store(seeds.end, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let mut result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
    result.failures.sort_by_key(|failure| failure.seed);
    result
}
