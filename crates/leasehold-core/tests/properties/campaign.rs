//! What holds for a [`Campaign`] whatever the store says, in whatever order.

use super::{
    config,
    world::{self, ME, MS, OTHER, granted, held, holding, record, replica},
};
use leasehold_core::{
    Fence, LeaseState, Moment, Retry, StoreError, StoreErrorKind, Timing, Verb,
    campaign::{Action, Answer, Campaign, Defeat, Event, Patience, Wish},
};
use proptest::{prelude::*, test_runner::TestCaseError};
use std::time::Duration;

#[derive(Debug, Clone)]
enum Happening {
    Wake,
    Ranked(usize),
    Invited,
    Sighted(LeaseState, Option<Fence>),
    LookFailed(StoreErrorKind),
    /// To the bid in flight, if there is one.
    Answer(Answer),
}

#[derive(Debug, Clone)]
enum Pause {
    /// Until the moment the campaign asked for.
    Asked,
    For(Duration),
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (0..4000u32).prop_map(|n| MS * n),
        1 => any::<u64>().prop_map(Duration::from_nanos),
        1 => Just(Duration::ZERO),
        1 => Just(Duration::MAX),
    ]
}

fn fence() -> impl Strategy<Value = Fence> {
    prop_oneof![9 => 1..100u64, 1 => Just(Fence::MAX.get())].prop_map(|n| Fence::new(n).expect("in range"))
}

fn error(verb: Verb) -> impl Strategy<Value = StoreError> {
    error_kind().prop_map(move |kind| StoreError::new(kind, verb, "memory:"))
}

fn error_kind() -> impl Strategy<Value = StoreErrorKind> {
    prop_oneof![
        5 => Just(StoreErrorKind::Unreachable),
        3 => Just(StoreErrorKind::Full),
        1 => Just(StoreErrorKind::Closed),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        1 => (fence(), duration()).prop_map(|(fence, remaining)| granted(fence, remaining)),
        4 => (fence(), duration(), any::<bool>()).prop_map(|(f, remaining, r)| held(f, remaining, r)),
        4 => error(Verb::Acquire).prop_map(Answer::Refused),
        6 => error(Verb::Acquire).prop_map(Answer::Unknown),
    ]
}

fn state() -> impl Strategy<Value = LeaseState> {
    let heir = prop_oneof![Just(ME), Just(OTHER)];
    prop_oneof![
        3 => Just(LeaseState::Vacant),
        3 => (fence(), duration()).prop_map(|(fence, remaining)| holding(OTHER, fence, remaining)),
        2 => (heir, duration()).prop_map(|(heir, remaining)| LeaseState::Reserved {
            heir: replica(heir), remaining,
        }),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => Just(Happening::Wake),
        10 => answer().prop_map(Happening::Answer),
        5 => (state(), prop::option::of(fence())).prop_map(|(s, counter)| Happening::Sighted(s, counter)),
        2 => error_kind().prop_map(Happening::LookFailed),
        1 => prop_oneof![0..20usize, Just(usize::MAX)].prop_map(Happening::Ranked),
        1 => Just(Happening::Invited),
    ]
}

fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![
        5 => Just(Pause::Asked),
        3 => Just(Pause::For(Duration::ZERO)),
        3 => (1..2000u32).prop_map(|n| Pause::For(MS * n)),
        1 => any::<u64>().prop_map(|n| Pause::For(Duration::from_nanos(n))),
    ]
}

/// A campaign, and what must be true of it by everything that it was told.
struct Observed {
    campaign: Campaign,
    patience: Patience,
    timing: Timing,
    now: Moment,
    // When the bid in flight was sent.
    bid: Option<Moment>,
    // An attempt whose last answer was Unknown, and that was not settled since.
    unsettled: bool,
    floor: Option<Fence>,
    end: Option<Moment>,
    wake_at: Option<Moment>,
    enlisted: bool,
    looking: bool,
    over: bool,
}

impl Observed {
    fn begin(now: Moment, wish: Wish) -> Result<Self, TestCaseError> {
        let end = if let Patience::Until(end) = wish.patience { Some(end) } else { None };
        let (patience, timing, floor) = (wish.patience, wish.timing, wish.floor);
        let (campaign, todo) = Campaign::begin(wish);
        let mut observed = Self {
            campaign,
            patience,
            timing,
            now,
            bid: None,
            unsettled: false,
            floor,
            end,
            wake_at: None,
            enlisted: false,
            looking: false,
            over: false,
        };
        observed.check(&todo, false)?;
        Ok(observed)
    }

    fn step(&mut self, now: Moment, event: Event) -> Result<(), TestCaseError> {
        self.now = now;
        let mut late = false;
        match &event {
            Event::Answered { sent, answer } => {
                self.bid = None;
                match answer {
                    Answer::Granted(granted) => {
                        self.unsettled = false;
                        self.floor = self.floor.max(Some(granted.claim.fence));
                        let trust = granted.remaining.min(self.timing.ttl());
                        late = now >= sent.after(trust.saturating_sub(self.timing.margin()));
                    }
                    Answer::Held(held) => {
                        self.unsettled = false;
                        self.floor = self.floor.max(Some(held.fence));
                    }
                    // Of a repetition it says nothing about the attempt (I7).
                    Answer::Refused(_) => {}
                    Answer::Unknown(_) => {
                        self.unsettled = true;
                        if self.patience == Patience::Try && self.end.is_none() {
                            self.end = Some(now.after(self.timing.ttl()));
                        }
                    }
                }
            }
            Event::Sighted(record) => {
                self.floor = self.floor.max(record.counter);
                self.looking = false;
            }
            Event::LookFailed(_) => self.looking = false,
            Event::Invited => self.looking = false,
            Event::Wake | Event::Ranked(_) => {}
        }
        let todo = self.campaign.step(now, event);
        self.check(&todo, late)
    }

    fn check(&mut self, todo: &[Action], late: bool) -> Result<(), TestCaseError> {
        prop_assert!(!self.over || todo.is_empty(), "after the end: {todo:?}");
        if self.over {
            return Ok(());
        }
        let loose = self.bid.is_some() || self.unsettled;
        let mut undone = false;
        self.wake_at = None;
        for (i, action) in todo.iter().enumerate() {
            let last = i + 1 == todo.len();
            match action {
                Action::Bid { fresh, floor } => {
                    prop_assert_eq!(self.bid, None, "one bid at a time");
                    prop_assert_eq!(
                        !fresh,
                        self.unsettled,
                        "an unknown is settled before a new attempt (I7)"
                    );
                    prop_assert_eq!(*floor, self.floor);
                    self.bid = Some(self.now);
                }
                Action::Look => {
                    prop_assert_eq!(self.bid, None);
                    self.looking = true;
                }
                Action::Enlist => {
                    prop_assert!(!self.enlisted);
                    self.enlisted = true;
                }
                Action::WakeAt(at) => {
                    prop_assert!(last, "one alarm, last");
                    prop_assert!(*at > self.now || self.bid == Some(self.now), "due at once is a hot loop");
                    prop_assert!(self.end.is_none_or(|end| *at <= end), "it ends in time");
                    self.wake_at = Some(*at);
                }
                Action::Undo => {
                    prop_assert!(!undone && (loose || late), "nothing to undo");
                    undone = true;
                }
                Action::Won { sent, granted } => {
                    prop_assert!(last && !undone && !late);
                    prop_assert!(self.now < sent.after(granted.remaining.min(self.timing.trust())));
                    self.over = true;
                }
                Action::GiveUp(defeat) => {
                    prop_assert!(last);
                    prop_assert_eq!(undone, loose || late, "what may have been won is undone");
                    let once = self.patience == Patience::Try;
                    let reasonable = match defeat {
                        Defeat::Busy(_) => once,
                        Defeat::TimedOut { .. } => {
                            self.end.is_some_and(|end| self.now >= end) || (once && late)
                        }
                        Defeat::Store(error) => once || error.retry() == Retry::Never,
                        _ => false,
                    };
                    prop_assert!(reasonable, "{defeat:?}");
                    self.over = true;
                }
            }
        }
        prop_assert_eq!(self.campaign.floor(), self.floor, "what was seen is remembered (I2)");
        if !self.over {
            prop_assert_eq!(self.campaign.is_unsettled(), self.bid.is_some() || self.unsettled);
            let waits_for_us = self.bid.is_none() && !self.looking;
            prop_assert!(self.wake_at.is_some() || !waits_for_us, "a living campaign is never left alone");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(config(500))]

    /// One bid at a time, one end, and last; an unknown attempt is repeated or undone, never forgotten (I7); what was
    /// seen is remembered (I2); nothing overflows.
    #[test]
    fn whatever_the_store_says_a_campaign_keeps_its_rules(
        ttl in prop_oneof![Just(50u32), Just(2000), Just(86_400_000)],
        start in prop_oneof![Just(0), Just(u64::MAX), Just(u64::MAX - 1_000_000), 0..u64::MAX],
        patience in prop_oneof![Just(None), Just(Some(None)), duration().prop_map(|d| Some(Some(d)))],
        stride in duration(),
        floor in prop::option::of(fence()),
        seed in any::<u64>(),
        story in prop::collection::vec((pause(), happening()), 0..60),
    ) {
        let now = Moment::from_nanos(start);
        let patience = match patience {
            None => Patience::Forever,
            Some(None) => Patience::Try,
            Some(Some(time)) => Patience::Until(now.after(time)),
        };
        let timing = Timing::new(MS * ttl).expect("a valid ttl");
        let mut campaign = Observed::begin(now, Wish { me: replica(ME), timing, patience, stride, floor, seed })?;
        for (pause, happening) in story {
            let now = match pause {
                Pause::Asked => campaign.wake_at.unwrap_or(campaign.now).max(campaign.now),
                Pause::For(time) => campaign.now.after(time),
            };
            let event = match happening {
                Happening::Wake => Event::Wake,
                Happening::Ranked(rank) => Event::Ranked(rank),
                Happening::Invited => Event::Invited,
                Happening::Sighted(state, counter) => Event::Sighted(record(state, counter)),
                Happening::LookFailed(kind) => {
                    Event::LookFailed(StoreError::new(kind, Verb::Inspect, "memory:"))
                }
                Happening::Answer(answer) => match campaign.bid {
                    Some(sent) => Event::Answered { sent, answer },
                    None => continue,
                },
            };
            campaign.step(now, event)?;
        }
    }

    /// B88: a store that answers at once, without use, is asked at most ten times a second, and never in a burst.
    #[test]
    fn a_store_that_is_no_use_is_not_hammered(
        seed in any::<u64>(),
        rank in 0..3usize,
        // What it says to each bid and look, over and over.
        bids in prop::collection::vec(0..6u8, 1..4),
        looks in prop::collection::vec(0..5u8, 1..4),
    ) {
        let start = Moment::from_nanos(1 << 40);
        let end = start.after(Duration::from_secs(60));
        let timing = Timing::new(MS * 2000).expect("a usual ttl");
        let wish = Wish { me: replica(ME), timing, patience: Patience::Until(end), stride: MS * 20, floor: None, seed };
        let (mut campaign, mut todo) = Campaign::begin(wish);
        todo.extend(campaign.step(start, Event::Ranked(rank)));
        let (mut bids, mut looks) = (bids.into_iter().cycle(), looks.into_iter().cycle());
        let (mut now, mut asked) = (start, Vec::new());
        'campaign: loop {
            let mut wake = None;
            let mut next = None;
            for action in &todo {
                next = match action {
                    Action::Bid { .. } => {
                        let answer = world::useless_answer(bids.next().unwrap_or(0));
                        Some(Event::Answered { sent: now, answer })
                    }
                    Action::Look => Some(world::useless_look(looks.next().unwrap_or(0))),
                    Action::WakeAt(at) => { wake = Some(*at); continue; }
                    Action::GiveUp(_) => break 'campaign,
                    Action::Won { .. } => return Err(TestCaseError::fail("won what was never granted")),
                    Action::Undo | Action::Enlist => continue,
                };
                asked.push(now);
                prop_assert!(asked.len() <= 600, "more than 600 requests within {:?}", now.since(start));
            }
            if let Some(answer) = next {
                todo = campaign.step(now, answer);
            } else {
                now = wake.expect("a living campaign asks to be woken");
                todo = campaign.step(now, Event::Wake);
            }
        }
        prop_assert_eq!(now, end);
        for (i, at) in asked.iter().enumerate() {
            let burst = asked[i..].iter().take_while(|later| later.since(*at) < Duration::from_secs(1)).count();
            prop_assert!(burst <= 30, "{burst} requests within a second");
        }
    }
}
