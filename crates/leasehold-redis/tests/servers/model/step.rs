//! What may happen to a lease, by chance.

use crate::common::replica;
use leasehold_core::{
    AttemptId, Bid, Claim, Fence, LeaseName, Note, Parting, Renewal, ReplicaId, TraceContext,
    timing::{MAX_TTL, MIN_TTL},
};
use std::time::Duration;

/// One step.
#[derive(Debug)]
pub(super) enum Step {
    Acquire(Bid),
    Renew(Renewal),
    Release(Claim, Parting),
    Force(ReplicaId, String),
    /// Whatever lives ends by the store's clock.
    Expire,
    /// Somebody removes the counter, or sets it back, while a claim or a reservation lives.
    LoseCounter,
    SetCounterBack,
}

impl Step {
    /// `claims` were granted so far.
    pub(super) fn roll(dice: &mut Dice, name: &LeaseName, claims: &[Claim]) -> Self {
        match dice.below(20) {
            0..=6 => Self::Acquire(again_or_new(dice, name, claims)),
            7..=9 if !claims.is_empty() => {
                Self::Renew(Renewal { claim: one_of(dice, claims), ttl: ttl(dice) })
            }
            10..=14 if !claims.is_empty() => Self::Release(one_of(dice, claims), parting(dice)),
            15 => Self::Force(anyone(dice), ["", "stuck\nfor a day"][dice.index(2)].to_owned()),
            16 | 17 => Self::Expire,
            18 => Self::LoseCounter,
            19 => Self::SetCounterBack,
            _ => Self::Acquire(bid(dice, name)),
        }
    }
}

/// A new attempt.
pub(super) fn bid(dice: &mut Dice, name: &LeaseName) -> Bid {
    Bid {
        name: name.clone(),
        replica: anyone(dice),
        attempt: AttemptId::from_hex(&format!("{:016x}{:016x}", dice.next(), dice.next())).unwrap(),
        ttl: ttl(dice),
        floor: floor(dice),
        crash_witness: false,
        trace: trace(dice),
    }
}

/// A new attempt, or one whose claim was granted before.
fn again_or_new(dice: &mut Dice, name: &LeaseName, claims: &[Claim]) -> Bid {
    let mut bid = bid(dice, name);
    if !claims.is_empty() && dice.below(3) == 0 {
        let claim = one_of(dice, claims);
        (bid.attempt, bid.replica) = (claim.attempt, claim.replica);
    }
    bid
}

/// The latest claim mostly, or any other one.
fn one_of(dice: &mut Dice, claims: &[Claim]) -> Claim {
    let back = if dice.below(3) == 0 { dice.index(claims.len()) } else { 0 };
    claims[claims.len() - 1 - back].clone()
}

fn parting(dice: &mut Dice) -> Parting {
    let window = Duration::from_secs(60 + dice.below(600));
    Parting {
        heir: (dice.below(2) == 0).then(|| (anyone(dice), window)),
        note: (dice.below(2) == 0).then(|| {
            let from = Fence::new(1 + dice.below(50)).unwrap();
            Note::new(from, [&b"state"[..], b"", b"\n \xff\0"][dice.index(3)]).unwrap()
        }),
        trace: trace(dice),
    }
}

/// Far above what a sequence takes, or no ttl at all.
fn ttl(dice: &mut Dice) -> Duration {
    match dice.below(30) {
        0 => MIN_TTL / 2,
        1 => MAX_TTL * 2,
        _ => Duration::from_secs(60 + dice.below(600)),
    }
}

/// Mostly none, or one that has been passed; sometimes one that is far ahead, and the last ones of all.
fn floor(dice: &mut Dice) -> Option<Fence> {
    let number = match dice.below(60) {
        0..=19 => 1 + dice.below(20),
        20 => Fence::MAX.get() / 3,
        21 => Fence::MAX.get() - dice.below(3),
        _ => return None,
    };
    Some(Fence::new(number).unwrap())
}

fn trace(dice: &mut Dice) -> TraceContext {
    if dice.below(2) == 0 {
        return TraceContext::NONE;
    }
    let (trace, span) = (dice.next() | 1, dice.next() | 1);
    TraceContext::parse(&format!("00-{trace:032x}-{span:016x}-01"))
}

fn anyone(dice: &mut Dice) -> ReplicaId {
    replica(["web-1", "web 2", "heir", "fence=1 attempt=0"][dice.index(4)])
}

/// SplitMix64 (Steele, Lea, Flood 2014), so that the seed of an old failure still replays it.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }
}
