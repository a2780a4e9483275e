//! Thousands of worlds keep the invariants; a broken one is caught.
//!
//! `LEASEHOLD_SEED=n` replays one seed with its whole story, `LEASEHOLD_SEEDS=n` lives through more of them.

use leasehold_testkit::{
    history::Traffic,
    simulation::{Mutant, run, sweep},
};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// I1 to I7, I9 and I10, under loss, delay, doubling, pauses, crashes and partitions.
#[test]
fn thousands_of_worlds_keep_the_invariants() {
    if let Some(seed) = number("LEASEHOLD_SEED") {
        let run = run(seed, None);
        println!("{:#?}", run.setup);
        for event in &run.history {
            println!("{:>14.6} {} #{} {:?}", event.at as f64 / 1e9, event.replica, event.fence, event.what);
        }
        run.check().unwrap_or_else(|failure| panic!("{failure}"));
        return;
    }
    let seeds = number("LEASEHOLD_SEEDS").unwrap_or(2_000);
    let sweep = sweep(0..seeds, None);
    if let Some(failure) = sweep.failures.first() {
        panic!("{failure}");
    }
    println!("{} seeds: {:?}", sweep.seeds, sweep.traffic);
    let n = seeds as usize;
    let enough = Traffic {
        grants: 8 * n,
        takeovers: 4 * n,
        expiries: n,
        handovers: n,
        accepted: 100 * n,
        refused: n / 4,
    };
    enough.reached_by(sweep.traffic).unwrap_or_else(|vacuous| panic!("{vacuous}"));
}

#[test]
fn a_seed_repeats_its_world_and_another_does_not() {
    for seed in [0, 1, 41, 1_000_003] {
        assert_eq!(run(seed, None).history, run(seed, None).history, "seed {seed}");
    }
    assert_ne!(run(1, None).history, run(2, None).history);
}

#[test]
fn every_mutant_is_caught_within_a_few_seeds() {
    for mutant in Mutant::ALL {
        let sweep = sweep(0..300, Some(*mutant));
        let failure = sweep.failures.first().unwrap_or_else(|| panic!("{mutant:?} was not caught"));
        println!("{mutant:?} was caught at seed {}: {}", failure.seed, failure.violations[0]);
    }
}
