//! A server beside the reference: the same random steps, and the same answers.
//!
//! Each sequence has a lease of its own. After each step the two stores show the same record; remaining times aside, for the
//! clock of the reference stands still. `LEASEHOLD_SEED=n` replays one sequence with all its steps, `LEASEHOLD_SEEDS=n` runs
//! more of them.

mod step;

use crate::common::{lease, open, replica};
use leasehold_core::{
    Acquire, Claim, Fence, Force, LeaseName, LeaseRecord, LeaseState, LeaseStore, ManualClock, MemoryStore,
    Parting, Release, Renew, Renewal, StoreError, StoreErrorKind, timing::MAX_TTL,
};
use leasehold_redis::RedisStore;
use leasehold_testkit::redis::{Redis, RedisServer};
use std::{fmt::Debug, sync::Arc, time::Duration};
use step::{Dice, Step};

const STEPS: usize = 40;
const SEEDS: u64 = 300;

#[tokio::test]
async fn any_sequence_of_steps_is_answered_as_the_reference_answers_it() {
    let server = Redis::new().start().await.unwrap();
    let store = open(&server.url()).await;
    if let Some(seed) = number("LEASEHOLD_SEED") {
        let mut both = Both::new(&server, &store, seed);
        let outcome = both.live().await;
        println!("{}", both.story.join("\n"));
        return outcome.unwrap_or_else(|problem| panic!("{problem}"));
    }
    let mut granted = 0;
    for seed in 0..number("LEASEHOLD_SEEDS").unwrap_or(SEEDS) {
        let mut both = Both::new(&server, &store, seed);
        if let Err(problem) = both.live().await {
            let story = both.story.join("\n");
            panic!("{story}\n{problem}\nseed {seed}; replay it with LEASEHOLD_SEED={seed}");
        }
        granted += both.claims.len();
    }
    assert!(granted > 0, "nothing was granted, so nothing was compared");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

/// What a store answered. The two are at different addresses, so that a refusal is compared by its kind.
#[derive(Debug, PartialEq)]
enum Said<T> {
    Answer(T),
    Refused(StoreErrorKind),
}

macro_rules! said {
    ($answer:expr, $verb:ident) => {
        match $answer {
            $verb::Refused(error) => Said::Refused(error.kind().clone()),
            answer => Said::Answer(answer),
        }
    };
}

/// A lease in both stores, and what was done with it.
struct Both<'a> {
    server: &'a RedisServer,
    real: &'a RedisStore,
    clock: ManualClock,
    reference: MemoryStore,
    name: LeaseName,
    dice: Dice,
    /// Every claim that was granted.
    claims: Vec<Claim>,
    story: Vec<String>,
}

impl<'a> Both<'a> {
    fn new(server: &'a RedisServer, real: &'a RedisStore, seed: u64) -> Self {
        let clock = ManualClock::default();
        let reference = MemoryStore::new(Arc::new(clock.clone()));
        let name = lease(&format!("model {seed}"));
        let (dice, claims, story) = (Dice::new(seed), Vec::new(), Vec::new());
        Self { server, real, clock, reference, name, dice, claims, story }
    }

    async fn live(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            let step = Step::roll(&mut self.dice, &self.name, &self.claims);
            self.story.push(format!("{step:?}"));
            self.take(step).await?;
            let (real, reference) = (self.shown().await?, self.reference.inspect(&self.name).await);
            self.same(real, timeless(reference.map_err(|error| told(&error))?))?;
        }
        self.forget().await
    }

    async fn take(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Acquire(bid) => {
                let real = self.real.acquire(&bid).await;
                if let Acquire::Granted(granted) = &real {
                    self.keep(&granted.claim)?;
                }
                let reference = self.reference.acquire(&bid).await;
                self.same(said!(untimed(real), Acquire), said!(untimed(reference), Acquire))
            }
            Step::Renew(renewal) => {
                let one = [renewal];
                let (real, reference) = (self.real.renew(&one).await, self.reference.renew(&one).await);
                let said =
                    |answers: Vec<Renew>| answers.into_iter().map(|answer| said!(answer, Renew)).collect();
                self.same::<Vec<_>>(said(real), said(reference))
            }
            Step::Release(claim, parting) => {
                let real = self.real.release(&claim, &parting).await;
                let reference = self.reference.release(&claim, &parting).await;
                self.same(said!(real, Release), said!(reference, Release))
            }
            Step::Force(by, reason) => {
                let real = self.real.force_release(&self.name, &by, &reason).await;
                let reference = self.reference.force_release(&self.name, &by, &reason).await;
                self.same(said!(real, Force), said!(reference, Force))
            }
            Step::Expire => {
                self.expire();
                self.clock.advance(MAX_TTL);
                Ok(())
            }
            // Of what the claim or the reservation remembers nothing is lost to anybody.
            Step::LoseCounter | Step::SetCounterBack if self.shown().await?.state == LeaseState::Vacant => {
                Ok(())
            }
            Step::LoseCounter => {
                self.server.cli(&["HDEL", &self.key("fence"), "counter"]);
                Ok(())
            }
            Step::SetCounterBack => {
                self.server.cli(&["HSET", &self.key("fence"), "counter", "1"]);
                Ok(())
            }
        }
    }

    /// I2 where the reference has no say: everything is lost but the claim or the reservation. The next term has a higher
    /// fence all the same, if the claim is renewed or ends in order.
    async fn forget(&mut self) -> Result<(), String> {
        let record = self.shown().await?;
        if record.state == LeaseState::Vacant || record.counter == Some(Fence::MAX) {
            return Ok(());
        }
        self.server.cli(&["DEL", &self.key("fence")]);
        let how = self.dice.below(4);
        self.story.push(format!("everything else is lost; then {how}"));
        let mut heir = replica("heir");
        match record.state {
            LeaseState::Held { claim, .. } if how == 0 => {
                let answer = self.real.renew(&[Renewal { claim, ttl: MAX_TTL }]).await;
                self.same(answer, vec![Renew::Renewed { remaining: MAX_TTL }])?;
                self.expire();
            }
            LeaseState::Held { .. } if how == 1 => {
                let _ = self.real.force_release(&self.name, &heir, "").await;
            }
            LeaseState::Held { claim, .. } => {
                let reserved = (how == 2).then(|| (heir.clone(), MAX_TTL));
                let parting = Parting { heir: reserved, ..Parting::default() };
                self.same(self.real.release(&claim, &parting).await, Release::Released)?;
                if how == 2 {
                    self.server.cli(&["DEL", &self.key("fence")]);
                }
            }
            LeaseState::Reserved { heir: named, .. } => heir = named,
            LeaseState::Vacant => {}
        }
        let mut bid = step::bid(&mut self.dice, &self.name);
        (bid.replica, bid.floor, bid.ttl) = (heir, None, MAX_TTL);
        match self.real.acquire(&bid).await {
            Acquire::Granted(granted) => self.keep(&granted.claim),
            other => Err(format!("it was to be granted: {other:?}")),
        }
    }

    /// What lives ends, by the clocks of the stores alone.
    fn expire(&self) {
        self.server.cli(&["DEL", &self.key("claim")]);
    }

    fn key(&self, of: &str) -> String {
        format!("leasehold:{{{}}}:{of}", self.name)
    }

    async fn shown(&self) -> Result<LeaseRecord, String> {
        self.real.inspect(&self.name).await.map(timeless).map_err(|error| told(&error))
    }

    /// A claim that was granted: the one of the last grant again, or one with a higher fence than all before.
    fn keep(&mut self, claim: &Claim) -> Result<(), String> {
        match self.claims.last() {
            Some(last) if last == claim => return Ok(()),
            Some(last) if last.fence >= claim.fence => {
                return Err(format!("fence {} after {}", claim.fence, last.fence));
            }
            _ => {}
        }
        self.claims.push(claim.clone());
        Ok(())
    }

    fn same<T: Debug + PartialEq>(&mut self, real: T, reference: T) -> Result<(), String> {
        self.story.push(format!("    {real:?}"));
        if real == reference { Ok(()) } else { Err(format!("the reference says\n    {reference:?}")) }
    }
}

fn told(error: &StoreError) -> String {
    error.to_string()
}

/// The same, of an answer.
fn untimed(mut answer: Acquire) -> Acquire {
    if let Acquire::Held(held) = &mut answer {
        held.remaining = Duration::ZERO;
    }
    answer
}

/// Without what passes with time.
fn timeless(mut record: LeaseRecord) -> LeaseRecord {
    match &mut record.state {
        LeaseState::Held { remaining, held_for, .. } => (*remaining, *held_for) = Default::default(),
        LeaseState::Reserved { remaining, .. } => *remaining = Duration::ZERO,
        LeaseState::Vacant => {}
    }
    record
}
