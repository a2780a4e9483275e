//! What holds for a [`Tenure`] whatever happens to it, in whatever order.

use super::{config, world::MS};
use leasehold_core::{
    Fence, Moment, NotHolder, Stale, Standing, StoreError, StoreErrorKind, Timing, Verb,
    standing::LostCause,
    tenure::{Action, Answer, Event, Tenure},
};
use proptest::{prelude::*, test_runner::TestCaseError};
use std::{collections::VecDeque, time::Duration};

/// One thing that happens after a while.
#[derive(Debug, Clone)]
enum Happening {
    Wake,
    Pulse,
    Outranked,
    Doubted,
    /// To the attempt with this index, counted from the latest.
    Answer(usize, Reply),
}

#[derive(Debug, Clone)]
enum Reply {
    Renewed(Duration),
    Failed(StoreErrorKind),
    NotHolder,
}

/// How long until something happens.
#[derive(Debug, Clone)]
enum Pause {
    /// Until the moment the tenure asked for.
    Asked,
    For(Duration),
}

fn error_kind() -> impl Strategy<Value = StoreErrorKind> {
    prop_oneof![
        Just(StoreErrorKind::Unreachable),
        Just(StoreErrorKind::Denied),
        Just(StoreErrorKind::Unwitnessed),
        Just(StoreErrorKind::Closed),
        (0..5000u32).prop_map(|n| StoreErrorKind::TimedOut(MS * n)),
    ]
}

fn remaining() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (0..4000u32).prop_map(|n| MS * n),
        1 => any::<u64>().prop_map(Duration::from_nanos),
        1 => Just(Duration::ZERO),
        1 => Just(Duration::MAX),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    let reply = prop_oneof![
        6 => remaining().prop_map(Reply::Renewed),
        5 => error_kind().prop_map(Reply::Failed),
        1 => Just(Reply::NotHolder),
    ];
    prop_oneof![
        6 => Just(Happening::Wake),
        2 => Just(Happening::Pulse),
        8 => (0..4usize, reply).prop_map(|(which, reply)| Happening::Answer(which, reply)),
        1 => Just(Happening::Outranked),
        3 => Just(Happening::Doubted),
    ]
}

fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![
        6 => Just(Pause::Asked),
        2 => Just(Pause::For(Duration::ZERO)),
        4 => (1..3000u32).prop_map(|n| Pause::For(MS * n)),
        1 => any::<u64>().prop_map(|n| Pause::For(Duration::from_nanos(n))),
    ]
}

/// Every timing that [`Timing`] accepts, the usual ones more often.
fn timing() -> impl Strategy<Value = Timing> {
    let parts = (50..10_000u32, 0.0..1.0f64, 0.0..1.0f64, 0.0..1.0f64);
    let odd = parts.prop_filter_map("no triangle", |(ttl, renew, margin, grace)| {
        let ttl = MS * ttl;
        let room = ttl.mul_f64(0.999);
        let timing = Timing::new(ttl).ok()?.with_margin(room.mul_f64(margin / 3.0)).ok()?;
        let renew = room.mul_f64(renew).max(Duration::from_nanos(1));
        timing.with_renew_every(renew).ok()?.with_grace(room.mul_f64(grace)).ok()
    });
    prop_oneof![
        Just(Timing::new(MS * 2000).expect("a usual ttl")),
        Just(Timing::new(MS * 50).expect("the shortest ttl")),
        Just(Timing::new(Duration::from_hours(24)).expect("the longest ttl")),
        odd,
    ]
}

/// A tenure, and everything that it said so far.
struct Observed {
    tenure: Tenure,
    timing: Timing,
    now: Moment,
    // Sent, to be given up at, and whether it was answered.
    attempts: Vec<(Moment, Moment, bool)>,
    // The highest deadline that a success allows.
    allowed: Moment,
    trusted_until: Moment,
    wake_at: Option<Moment>,
    ended: bool,
}

impl Observed {
    fn begin(
        timing: Timing,
        sent: Moment,
        took: Duration,
        remaining: Duration,
        gate: Option<Duration>,
    ) -> Result<Self, TestCaseError> {
        let now = sent.after(took);
        let (tenure, todo) = Tenure::begin(timing, sent, remaining, now, 3);
        let tenure = if let Some(silence) = gate { tenure.gated(silence) } else { tenure };
        let mut observed = Self {
            tenure,
            timing,
            now,
            attempts: Vec::new(),
            allowed: sent.after(timing.trust()),
            trusted_until: Moment::ORIGIN,
            wake_at: None,
            ended: false,
        };
        observed.check(&todo)?;
        Ok(observed)
    }

    fn step(&mut self, now: Moment, event: Event) -> Result<(), TestCaseError> {
        self.now = now;
        if let Event::Answered { sent, answer: Answer::Renewed { .. } } = &event {
            self.allowed = self.allowed.max(sent.after(self.timing.trust()));
        }
        let todo = self.tenure.step(now, event);
        self.check(&todo)
    }

    fn check(&mut self, todo: &[Action]) -> Result<(), TestCaseError> {
        prop_assert!(!self.ended || todo.is_empty(), "after the end: {todo:?}");
        self.wake_at = None;
        for (i, action) in todo.iter().enumerate() {
            match action {
                Action::Renew { sent, give_up_after } => {
                    prop_assert_eq!(*sent, self.now);
                    let give_up_at = sent.after(*give_up_after);
                    prop_assert!(!give_up_after.is_zero() && give_up_at <= self.tenure.trusted_until());
                    // One attempt in flight: those before were answered, or given up.
                    let busy = self.attempts.iter().find(|(_, until, done)| !done && *until > self.now);
                    prop_assert_eq!(busy, None);
                    self.attempts.push((*sent, give_up_at, false));
                }
                Action::Extend(until) => {
                    prop_assert!(*until > self.trusted_until, "trust never moves back");
                    prop_assert!(*until <= self.allowed, "trust counts from the sending (B10)");
                    self.trusted_until = *until;
                }
                Action::WakeAt(at) => {
                    prop_assert_eq!(i + 1, todo.len(), "one alarm, last");
                    prop_assert!(*at > self.now, "due at once is a hot loop");
                    prop_assert!(*at <= self.trusted_until, "the deadline needs nobody's answer (I4)");
                    self.wake_at = Some(*at);
                }
                Action::End(_) => {
                    prop_assert_eq!(i + 1, todo.len(), "the end is last");
                    self.ended = true;
                }
                Action::LastCall { within } => {
                    prop_assert!(*within <= self.timing.grace() && !within.is_zero());
                }
                Action::Announce(Standing::Lost { .. }) => {
                    prop_assert!(matches!(todo.get(i + 1), Some(Action::End(_))), "lost is the end");
                }
                Action::Announce(Standing::HandingOver { .. }) => {
                    prop_assert!(false, "a tenure hands nothing over");
                }
                Action::Announce(Standing::Held { until } | Standing::Jeopardy { until, .. }) => {
                    prop_assert_eq!(*until, self.trusted_until);
                    prop_assert!(*until > self.now, "what is announced as held is held");
                }
                Action::Anomaly(odd) => prop_assert!(odd.remaining > odd.asked),
            }
        }
        prop_assert_eq!(self.ended, self.tenure.is_over());
        prop_assert!(self.ended || self.now < self.tenure.trusted_until(), "past the deadline (I4)");
        prop_assert!(self.ended || self.tenure.trusted_until() == self.trusted_until);
        prop_assert!(self.ended || self.wake_at.is_some(), "a living term asks to be woken");
        Ok(())
    }
}

proptest! {
    #![proptest_config(config(500))]

    /// Never a renewal after the end; one end, and last; trust only from successes, counted from their sending, and
    /// never back; one attempt at a time; always an alarm, never late and never due at once (I4, B10, B12, B23).
    #[test]
    fn whatever_happens_a_term_keeps_its_rules(
        timing in timing(),
        // Also moments at both ends of what a clock can show.
        start in prop_oneof![Just(0), Just(u64::MAX), Just(u64::MAX - 1_000_000), 0..u64::MAX],
        took in (0..4000u32).prop_map(|n| MS * n),
        first in prop_oneof![3 => Just(None), 1 => remaining().prop_map(Some)],
        gate in prop_oneof![2 => Just(None), 1 => (1..5000u32).prop_map(|n| Some(MS * n))],
        story in prop::collection::vec((pause(), happening()), 0..60),
    ) {
        let first = first.unwrap_or_else(|| timing.ttl());
        let mut term = Observed::begin(timing, Moment::from_nanos(start), took, first, gate)?;
        for (pause, happening) in story {
            let now = match pause {
                Pause::Asked => term.wake_at.unwrap_or(term.now),
                Pause::For(time) => term.now.after(time),
            };
            let event = match happening {
                Happening::Wake => Event::Wake,
                Happening::Pulse => Event::Pulse(now),
                Happening::Outranked => {
                    Event::Outranked(Stale { presented: Fence::FIRST, highest: Fence::MAX })
                }
                Happening::Doubted => Event::Doubted,
                Happening::Answer(which, reply) => {
                    let open = term.attempts.iter_mut().rev().filter(|(_, _, done)| !done).nth(which);
                    let Some((sent, _, done)) = open else { continue };
                    *done = true;
                    let answer = match reply {
                        Reply::Renewed(remaining) => Answer::Renewed { remaining },
                        Reply::Failed(kind) => Answer::Failed(StoreError::new(kind, Verb::Renew, "memory:")),
                        Reply::NotHolder => Answer::NotHolder(NotHolder { holder: None, highest: None }),
                    };
                    Event::Answered { sent: *sent, answer }
                }
            };
            term.step(now, event)?;
        }
    }

    /// A store loses nobody that always answers in less than a third of the trust, and in less than half of what is
    /// left of it after the renewal interval (B11).
    #[test]
    fn no_accepted_timing_loses_a_healthy_holder(
        timing in timing(),
        round_trips in prop::collection::vec(0.0..1.0f64, 200),
    ) {
        let start = Moment::from_nanos(1 << 40);
        let slowest = ((timing.trust() - timing.renew_every()) / 3).min(timing.trust() / 4);
        let mut term = Observed::begin(timing, start, Duration::ZERO, timing.ttl(), None)?;
        for share in round_trips {
            let due = term.wake_at.unwrap_or(term.now);
            if term.attempts.last().is_none_or(|(_, _, done)| *done) {
                term.step(due, Event::Wake)?;
            }
            // The alarm may have been for a last call.
            let Some((sent, give_up_at, done)) = term.attempts.last_mut().filter(|(_, _, done)| !done) else {
                continue;
            };
            *done = true;
            let (sent, answered) = (*sent, sent.after(slowest.mul_f64(share)));
            prop_assert!(answered < *give_up_at);
            term.step(answered, Event::Answered { sent, answer: Answer::Renewed { remaining: timing.ttl() } })?;
            prop_assert!(!term.ended);
        }
        prop_assert!(term.attempts.len() > 90, "{} renewals", term.attempts.len());
    }

    /// B88: whatever fails at once, a holder of a 2 s lease asks at most ten times in any second, and the lease still
    /// ends at its deadline exactly.
    #[test]
    fn a_store_that_fails_at_once_is_not_hammered(seed in any::<u64>(), silence in 0..300u32) {
        let timing = Timing::new(MS * 2000).expect("a usual ttl");
        let start = Moment::from_nanos(1 << 40);
        let (mut tenure, mut todo) = Tenure::begin(timing, start, timing.ttl(), start, seed);
        let mut recent = VecDeque::new();
        let (mut now, mut sent) = (start, 0);
        let end = loop {
            let mut wake = None;
            let mut asked = None;
            for action in &todo {
                match action {
                    Action::Renew { sent, .. } => asked = Some(*sent),
                    Action::WakeAt(at) => wake = Some(*at),
                    Action::End(cause) => { prop_assert_eq!(cause, &LostCause::Expired); }
                    _ => {}
                }
            }
            if tenure.is_over() {
                break now;
            }
            let Some(at) = asked else {
                now = wake.expect("a living term asks to be woken");
                todo = tenure.step(now, Event::Wake);
                continue;
            };
            sent += 1;
            recent.push_back(at);
            recent.retain(|earlier| at.since(*earlier) < Duration::from_secs(1));
            prop_assert!(recent.len() <= 10, "{} requests within a second", recent.len());
            // Some answer at once, some after a while.
            now = now.after(MS * (silence / 3) * u32::from(sent % 3 == 0)).min(tenure.trusted_until());
            let error = StoreError::new(StoreErrorKind::Unreachable, Verb::Renew, "memory:");
            todo = tenure.step(now, Event::Answered { sent: at, answer: Answer::Failed(error) });
        };
        prop_assert_eq!(end, start.after(timing.trust()));
        prop_assert!(sent >= 3, "at least two retries (B21)");
    }
}
