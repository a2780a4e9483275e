//! Which request meets which fault, and how many requests there were.

use super::Fault;
use leasehold_core::Verb;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The plan of a [`FaultyStore`](super::FaultyStore), and its count. Clones share one plan.
///
/// For each request the first that applies decides: the verb's script, then what always happens to the verb, then
/// the seeded mix; else nothing happens.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    plan: Arc<Mutex<Plan>>,
}

/// Faults drawn at random, the same for the same seed and the same order of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// Repeats the draws.
    pub seed: u64,
    /// The chance, from 0 to 1, that a request meets a fault.
    pub chance: f64,
    /// One of these, each as likely as the others.
    pub faults: Vec<Fault>,
}

#[derive(Debug, Default)]
struct Plan {
    scripts: HashMap<Verb, VecDeque<Fault>>,
    always: HashMap<Verb, Fault>,
    mix: Option<(Mix, StdRng)>,
    counts: HashMap<Verb, u64>,
    met: u64,
}

impl Faults {
    /// The next requests of `verb` meet these, one each, after those already scripted.
    pub fn next(&self, verb: Verb, faults: impl IntoIterator<Item = Fault>) {
        self.plan().scripts.entry(verb).or_default().extend(faults);
    }

    /// Every request of `verb` meets this from now on.
    pub fn always(&self, verb: Verb, fault: Fault) {
        self.plan().always.insert(verb, fault);
    }

    /// Every request of any verb meets this from now on: the store is gone, say.
    pub fn everything(&self, fault: &Fault) {
        for verb in VERBS {
            self.always(*verb, fault.clone());
        }
    }

    /// Requests meet faults at random from now on.
    pub fn seeded(&self, mix: Mix) {
        let rng = StdRng::seed_from_u64(mix.seed);
        self.plan().mix = Some((mix, rng));
    }

    /// Ends all faults. Requests that hang go on hanging.
    pub fn heal(&self) {
        let mut plan = self.plan();
        plan.scripts.clear();
        plan.always.clear();
        plan.mix = None;
    }

    /// How many requests of `verb` there were. Each renewal of a batch is in one request.
    #[must_use]
    pub fn count(&self, verb: Verb) -> u64 {
        self.plan().counts.get(&verb).copied().unwrap_or(0)
    }

    /// How many requests there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.plan().counts.values().sum()
    }

    /// How many requests met a fault. A test whose faults were never met has shown nothing.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.plan().met
    }

    /// Counts a request, and decides what happens to it.
    pub(super) fn draw(&self, verb: Verb) -> Fault {
        let mut plan = self.plan();
        *plan.counts.entry(verb).or_default() += 1;
        let scripted = plan.scripts.get_mut(&verb).and_then(VecDeque::pop_front);
        let fault = scripted.or_else(|| plan.always.get(&verb).cloned()).or_else(|| {
            let (mix, rng) = plan.mix.as_mut()?;
            let hit = !mix.faults.is_empty() && rng.random_bool(mix.chance.clamp(0.0, 1.0));
            hit.then(|| mix.faults[rng.random_range(0..mix.faults.len())].clone())
        });
        let fault = fault.unwrap_or(Fault::None);
        plan.met += u64::from(fault != Fault::None);
        fault
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const VERBS: &[Verb] = &[
    Verb::Acquire,
    Verb::Renew,
    Verb::Release,
    Verb::ForceRelease,
    Verb::Inspect,
    Verb::List,
    Verb::Watch,
    Verb::Announce,
    Verb::Withdraw,
    Verb::Candidates,
    Verb::Post,
    Verb::Inbox,
    Verb::CheckFence,
    Verb::Diagnose,
];
