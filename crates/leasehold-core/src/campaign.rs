//! Wanting a lease: when to bid, when to wait, when to give up.
//!
//! ```text
//!           ┌─────────────── vacant ─────────────── Looking
//!           ▼                                          ▲ its turn came, and nobody said that it is vacant
//!  begin ─► Bidding ◄── its turn came, vacant ───── InTurn
//!           │  ▲  │                                    ▲ a vacancy was seen, or the holder's time is over
//!   granted │  │  └─ held ───────────────────────► Waiting ◄─ still held ─ InTurn, Looking
//!           ▼  │ refused, unknown
//!          Won └─► Pausing ─► the same again, or a fresh attempt
//! ```
//!
//! Waiters do not poll: they sleep until a sighting, or until the store's own expiry of the incumbent. Then the first
//! of the roster acts at once and the others follow one step apart, so N waiters make O(1) requests a vacancy.

use crate::{
    Fence, Granted, Held, LeaseRecord, LeaseState, Moment, ReplicaId, Retry, StoreError, StoreErrorKind,
    Timing, backoff::Backoff,
};
use std::time::Duration;

mod defeat;
mod wish;

pub use defeat::{Defeat, Obstacle};
pub use wish::{Patience, Wish};

/// What happens to a campaign.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The moment asked for by [`Action::WakeAt`] has come, or any other; waking too early or too often does no harm.
    Wake,
    /// The answer to the bid sent at `sent`.
    Answered {
        /// When its request was sent.
        sent: Moment,
        /// The answer.
        answer: Answer,
    },
    /// A state of the lease was seen, by the watch or by [`Action::Look`].
    Sighted(LeaseRecord),
    /// Looking failed.
    LookFailed(StoreError),
    /// Our place in the roster: how many candidates are before us.
    Ranked(usize),
    /// The holder says that it has let go in our favour. No grant, and it may be old news: the bid will tell.
    Invited,
}

/// The answer to a bid.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Granted.
    Granted(Granted),
    /// Somebody else's, or reserved for an heir.
    Held(Held),
    /// Certainly nothing happened.
    Refused(StoreError),
    /// Perhaps granted: the same attempt must be repeated or undone.
    Unknown(StoreError),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a bid.
    Bid {
        /// Whether it is a new attempt with a new attempt id. If not, the last attempt is repeated with its own id,
        /// to learn what became of it.
        fresh: bool,
        /// The highest fence ever seen.
        floor: Option<Fence>,
    },
    /// Read the lease's state.
    Look,
    /// Enter the roster, since there is something to wait for.
    Enlist,
    /// Send [`Event::Wake`] at this moment. The latest one counts.
    WakeAt(Moment),
    /// The lease is ours. The last action.
    Won {
        /// When the granted request was sent.
        sent: Moment,
        /// The grant.
        granted: Granted,
    },
    /// Release what the last attempt may have got: nobody will use it. Others follow.
    Undo,
    /// No more. The last action.
    GiveUp(Defeat),
}

/// Wanting a lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    me: ReplicaId,
    timing: Timing,
    // Whether somebody else's holding ends the campaign.
    once: bool,
    end: Option<Moment>,
    phase: Phase,
    // How many candidates are before us; none as far as we know.
    rank: usize,
    // One step of the order in which waiters follow each other into a vacancy.
    stride: Duration,
    floor: Option<Fence>,
    // The counter of a vacancy that was seen since the bid in flight was sent.
    vacated: Option<Fence>,
    enlisted: bool,
    last: Option<Obstacle>,
    // After failures of the store.
    backoff: Backoff,
    // After a store said "held, but over at once" again and again.
    calm: Backoff,
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// A bid is in flight; `repeated` if it asks what became of an attempt whose fate is unknown.
    Bidding {
        repeated: bool,
    },
    /// Nothing to do before `until`, then bid; `unsettled` if the last attempt's fate is unknown.
    Pausing {
        until: Moment,
        unsettled: bool,
    },
    /// Held by another until about `expiry`.
    Waiting {
        expiry: Moment,
    },
    /// Was it renewed, or is it vacant?
    Looking,
    /// We let the candidates before us go first; `seen` if it was seen vacant, and not only should be by now.
    InTurn {
        at: Moment,
        seen: bool,
    },
    Over,
}

/// Ranks behind this one share a time window: a vacancy must not stay open for the sake of order.
const MAX_STRIDES: u32 = 16;

impl Campaign {
    /// Begins a campaign: the first actions bid.
    #[must_use]
    pub fn begin(wish: Wish) -> (Self, Vec<Action>) {
        let Wish { me, timing, patience, stride, floor, seed } = wish;
        let base = Duration::from_millis(100).min(timing.ttl());
        let campaign = Self {
            me,
            timing,
            once: patience == Patience::Try,
            end: if let Patience::Until(end) = patience { Some(end) } else { None },
            phase: Phase::Bidding { repeated: false },
            rank: 0,
            stride,
            floor,
            vacated: None,
            enlisted: false,
            last: None,
            backoff: Backoff::new(base, Duration::from_secs(5).max(base), seed),
            calm: Backoff::new(Duration::from_millis(1), Duration::from_secs(1), !seed),
        };
        let mut todo = vec![Action::Bid { fresh: true, floor }];
        campaign.arm(&mut todo);
        (campaign, todo)
    }

    /// The highest fence seen so far.
    #[must_use]
    pub const fn floor(&self) -> Option<Fence> {
        self.floor
    }

    /// Whether the fate of the last attempt is unknown: whoever abandons the campaign now must undo it.
    #[must_use]
    pub const fn is_unsettled(&self) -> bool {
        matches!(self.phase, Phase::Bidding { .. } | Phase::Pausing { unsettled: true, .. })
    }

    /// Takes one event, and says what is to be done. An ended campaign does nothing more.
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Action> {
        let mut todo = Vec::new();
        if self.phase == Phase::Over {
            return todo;
        }
        match event {
            Event::Answered { sent, answer } => self.answered(now, sent, answer, &mut todo),
            Event::Sighted(record) => self.sighted(now, &record),
            Event::LookFailed(error) => self.look_failed(now, error, &mut todo),
            Event::Ranked(rank) => self.rank = rank,
            Event::Invited => self.invited(now),
            Event::Wake => {}
        }
        self.settle(now, &mut todo);
        todo
    }

    fn answered(&mut self, now: Moment, sent: Moment, answer: Answer, todo: &mut Vec<Action>) {
        let Phase::Bidding { repeated } = self.phase else { return };
        match answer {
            Answer::Granted(granted) => {
                self.seen(granted.claim.fence);
                if now < self.timing.trusted_until(sent, granted.remaining) {
                    self.phase = Phase::Over;
                    todo.push(Action::Won { sent, granted });
                } else {
                    // The answer took longer than its lease is worth: a late yes is a no.
                    todo.push(Action::Undo);
                    let last = Some(Obstacle::Late { took: now.since(sent) });
                    if self.once {
                        self.give_up(Defeat::TimedOut { last }, todo);
                        return;
                    }
                    self.last = last;
                    let until = now.after(self.backoff.next_delay());
                    self.phase = Phase::Pausing { until, unsettled: false };
                }
            }
            Answer::Held(held) => {
                self.backoff.reset();
                self.seen(held.fence);
                let expiry = self.expiry(now, held.remaining);
                self.last = Some(Obstacle::Held(held.clone()));
                if self.once {
                    self.give_up(Defeat::Busy(held), todo);
                    return;
                }
                self.phase = Phase::Waiting { expiry };
                if self.vacated >= Some(held.fence) {
                    // The answer is older than the news that overtook it: that very term is over (B98).
                    let turn = self.turn();
                    self.phase = Phase::InTurn { at: self.expiry(now, turn), seen: true };
                }
                if !self.enlisted {
                    self.enlisted = true;
                    todo.push(Action::Enlist);
                }
            }
            // The attempt was granted once and its term is over: nothing of it is left to settle.
            Answer::Refused(error) if *error.kind() == StoreErrorKind::SpentAttempt => {
                self.obstructed(now, error, false, todo);
            }
            // Certainly nothing was done *by this request*. What an earlier one of the same attempt did stays unknown,
            // and a fresh bid would find our own claim in its way (I7).
            Answer::Refused(error) => self.obstructed(now, error, repeated, todo),
            Answer::Unknown(error) => self.obstructed(now, error, true, todo),
        }
    }

    fn obstructed(&mut self, now: Moment, error: StoreError, unsettled: bool, todo: &mut Vec<Action>) {
        self.last = Some(Obstacle::Store(error.clone()));
        if error.retry() == Retry::Never || (self.once && !unsettled) {
            if unsettled {
                todo.push(Action::Undo);
            }
            self.give_up(Defeat::Store(error), todo);
            return;
        }
        // A single try still settles what it began: it asks a few times, for as long as one lease lasts.
        if self.once && self.end.is_none() {
            self.end = Some(now.after(self.timing.ttl()));
        }
        self.phase = Phase::Pausing { until: now.after(self.backoff.next_delay()), unsettled };
    }

    fn look_failed(&mut self, now: Moment, error: StoreError, todo: &mut Vec<Action>) {
        if self.phase != Phase::Looking {
            return;
        }
        if error.retry() == Retry::Never {
            self.give_up(Defeat::Store(error), todo);
            return;
        }
        self.last = Some(Obstacle::Store(error));
        self.phase = Phase::Waiting { expiry: now.after(self.backoff.next_delay()) };
    }

    fn sighted(&mut self, now: Moment, record: &LeaseRecord) {
        if let Some(fence) = record.counter {
            self.seen(fence);
        }
        let ours = match &record.state {
            LeaseState::Vacant => true,
            LeaseState::Reserved { heir, .. } => *heir == self.me,
            LeaseState::Held { .. } => false,
        };
        if ours && matches!(self.phase, Phase::Bidding { .. }) {
            self.vacated = record.counter;
        }
        if !matches!(self.phase, Phase::Waiting { .. } | Phase::Looking | Phase::InTurn { .. }) {
            return;
        }
        let (by, fence, reserved) = match &record.state {
            LeaseState::Held { claim, .. } => (claim.replica.clone(), Some(claim.fence), false),
            LeaseState::Reserved { heir, .. } if *heir != self.me => (heir.clone(), record.counter, true),
            // Reserved for us: nobody else is granted, so nobody needs to be let through first.
            LeaseState::Reserved { .. } => {
                self.phase = Phase::InTurn { at: now, seen: true };
                return;
            }
            LeaseState::Vacant => {
                // Older than what we know: overtaken news, or a store that lost its counter. A look will tell.
                let seen = record.counter >= self.floor;
                self.phase = match self.phase {
                    // A vacancy seen again must not push our turn back.
                    Phase::InTurn { at, seen: before } => Phase::InTurn { at, seen: seen || before },
                    // Our turn came before we looked.
                    Phase::Looking => Phase::InTurn { at: now, seen: true },
                    _ => Phase::InTurn { at: now.after(self.turn()), seen },
                };
                return;
            }
        };
        let remaining = record.remaining();
        if let Some(fence) = fence {
            self.last = Some(Obstacle::Held(Held { by, fence, remaining, reserved }));
        }
        self.phase = Phase::Waiting { expiry: self.expiry(now, remaining) };
    }

    fn invited(&mut self, now: Moment) {
        match self.phase {
            // The bid under way may have been sent before the holder let go.
            Phase::Bidding { .. } => self.vacated = self.vacated.max(self.floor),
            Phase::Waiting { .. } | Phase::Looking | Phase::InTurn { .. } => {
                self.phase = Phase::InTurn { at: now, seen: true };
            }
            Phase::Pausing { .. } | Phase::Over => {}
        }
    }

    /// When a holder's time is over. A store that says "over at once" each time would otherwise be asked in a hot
    /// loop; the first few times cost next to nothing, so that a lease about to expire is taken without delay.
    fn expiry(&mut self, now: Moment, remaining: Duration) -> Moment {
        if remaining >= Duration::from_millis(100).min(self.timing.ttl() / 4) {
            self.calm.reset();
            return now.after(remaining);
        }
        now.after(remaining.max(self.calm.next_delay()))
    }

    /// How long we let others go first.
    fn turn(&mut self) -> Duration {
        let steps = u32::try_from(self.rank).unwrap_or(u32::MAX);
        if steps == 0 {
            return Duration::ZERO;
        }
        let spread =
            if steps > MAX_STRIDES { self.stride.saturating_mul(MAX_STRIDES) } else { self.stride / 2 };
        self.stride.saturating_mul(steps.min(MAX_STRIDES)).saturating_add(self.backoff.jitter(spread))
    }

    fn settle(&mut self, now: Moment, todo: &mut Vec<Action>) {
        if self.phase == Phase::Over {
            return;
        }
        if self.end.is_some_and(|end| now >= end) {
            if self.is_unsettled() {
                todo.push(Action::Undo);
            }
            let last = self.last.take();
            self.give_up(Defeat::TimedOut { last }, todo);
            return;
        }
        if let Phase::Waiting { expiry } = self.phase
            && now >= expiry
        {
            self.phase = Phase::InTurn { at: now.after(self.turn()), seen: false };
        }
        match self.phase {
            Phase::Pausing { until, unsettled } if now >= until => self.bid(!unsettled, todo),
            Phase::InTurn { at, seen: true } if now >= at => self.bid(true, todo),
            Phase::InTurn { at, seen: false } if now >= at => {
                self.phase = Phase::Looking;
                todo.push(Action::Look);
            }
            _ => {}
        }
        self.arm(todo);
    }

    fn bid(&mut self, fresh: bool, todo: &mut Vec<Action>) {
        self.phase = Phase::Bidding { repeated: !fresh };
        self.vacated = None;
        todo.push(Action::Bid { fresh, floor: self.floor });
    }

    fn arm(&self, todo: &mut Vec<Action>) {
        let due = match self.phase {
            Phase::Pausing { until: at, .. } | Phase::Waiting { expiry: at } | Phase::InTurn { at, .. } => {
                Some(at)
            }
            Phase::Bidding { .. } | Phase::Looking | Phase::Over => None,
        };
        if let Some(at) = due.into_iter().chain(self.end).min() {
            todo.push(Action::WakeAt(at));
        }
    }

    fn seen(&mut self, fence: Fence) {
        self.floor = self.floor.max(Some(fence));
    }

    fn give_up(&mut self, defeat: Defeat, todo: &mut Vec<Action>) {
        self.phase = Phase::Over;
        todo.push(Action::GiveUp(defeat));
    }
}
