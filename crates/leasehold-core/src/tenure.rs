//! Having a lease: when to renew, when to worry, when it is over.
//!
//! ```text
//!             renewed                    renewed
//!            ┌───────┐                ┌───────────┐
//!            ▼       │   failed       │           ▼
//!  begin ─► Held ────┴─────────────► Jeopardy ──► Held
//!            │                        │
//!            │ not the holder         │ end of trust · not the holder
//!            └──────────► Over ◄──────┘
//! ```
//!
//! Pure: the time comes with each event, and what is to be done comes back as actions. The renewer drives it.

use crate::{
    Moment, NotHolder, StoreError, StoreErrorKind, Timing, Verb,
    backoff::Backoff,
    standing::{JeopardyCause, LostCause, Standing},
};
use std::{mem::discriminant, time::Duration};

/// What happens to a tenure.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The moment asked for by [`Action::WakeAt`] has come, or any other; waking too early or too often does no harm.
    Wake,
    /// An answer to the renewal sent at `sent`.
    Answered {
        /// When its request was sent.
        sent: Moment,
        /// The answer.
        answer: Answer,
    },
    /// The worker last showed at this moment that it moves.
    Pulse(Moment),
    /// A fenced resource has accepted a higher fence.
    Outranked(crate::Stale),
    /// Something was seen that casts doubt on the claim. It ends nothing by itself: the store is asked at once, by a
    /// renewal, and its answer decides.
    Doubted,
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Renewed; what the store says is left.
    Renewed {
        /// Time left by the store's clock.
        remaining: Duration,
    },
    /// The claim is over.
    NotHolder(NotHolder),
    /// No success: refused, or unknown. Neither renews anything (invariant I7).
    Failed(StoreError),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a renewal now, and do not wait for its answer longer than `give_up_after`.
    Renew {
        /// The moment of sending, to be returned with the answer: trust counts from it.
        sent: Moment,
        /// The bound on this attempt.
        give_up_after: Duration,
    },
    /// Trust moved to this moment.
    Extend(Moment),
    /// Tell the observers.
    Announce(Standing),
    /// Tell the worker to end within this time, since its lease will likely be lost then.
    LastCall {
        /// The time that is left.
        within: Duration,
    },
    /// The store's clock does not add up.
    Anomaly(Anomaly),
    /// Send [`Event::Wake`] at this moment. The latest one counts.
    WakeAt(Moment),
    /// The term is over: end the worker now. The last action of every tenure.
    End(LostCause),
}

/// More or less time left than a store that keeps its own clock would tell (rule 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anomaly {
    /// What was asked for.
    pub asked: Duration,
    /// What the store said is left.
    pub remaining: Duration,
}

/// Having a lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenure {
    timing: Timing,
    trusted_until: Moment,
    next_attempt: Moment,
    in_flight: Option<Attempt>,
    // A renewal in flight answers no doubt that came after its sending: the next one does, at once.
    doubted: bool,
    trouble: Option<JeopardyCause>,
    last_call_made: bool,
    // Without a pulse in this long, the lease is not renewed on the worker's behalf.
    max_silence: Option<Duration>,
    last_pulse: Moment,
    retry: Backoff,
    over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Attempt {
    sent: Moment,
    give_up_at: Moment,
}

/// An attempt is not cut shorter than this as long as trust lasts: a healthy store needs a few of its round trips.
const SHORTEST_ATTEMPT: Duration = Duration::from_millis(25);
/// What lies between two attempts at a store that fails at once: the shorter of this and a sixteenth of the renewal
/// interval, never less than [`SHORTEST_PAUSE`]. So the last second of a term makes ten requests, not fifteen.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

impl Tenure {
    /// A tenure whose acquire was sent at `sent` and answered at `now`, with `remaining` left by the store's clock.
    ///
    /// Trust is counted from the sending: a deadline counted from the answer gave two believers in simulation.
    /// If the answer came too late to be trusted, the tenure is over already, and nothing but that is announced.
    #[must_use]
    pub fn begin(
        timing: Timing,
        sent: Moment,
        remaining: Duration,
        now: Moment,
        seed: u64,
    ) -> (Self, Vec<Action>) {
        // A long lease is no reason to wait long for the second try.
        let base = (timing.renew_every() / 8).min(Duration::from_secs(1));
        let retry = Backoff::new(base, timing.renew_every().min(Duration::from_secs(60)), seed);
        let mut tenure = Self {
            timing,
            trusted_until: Moment::ORIGIN,
            next_attempt: sent.after(timing.renew_every()),
            in_flight: None,
            doubted: false,
            trouble: None,
            last_call_made: false,
            max_silence: None,
            last_pulse: now,
            retry,
            over: false,
        };
        let mut todo = Vec::new();
        let until = timing.trusted_until(sent, remaining);
        if now < until {
            tenure.renewed(until, remaining, &mut todo);
        } else {
            tenure.trusted_until = until;
        }
        tenure.settle(now, &mut todo);
        (tenure, todo)
    }

    /// Renews only while the worker gave a pulse within `max_silence`. For renewals on a runtime of their own, which
    /// would otherwise keep the lease of a wedged worker for ever.
    #[must_use]
    pub const fn gated(mut self, max_silence: Duration) -> Self {
        self.max_silence = Some(max_silence);
        self
    }

    /// The end of trust.
    #[must_use]
    pub const fn trusted_until(&self) -> Moment {
        self.trusted_until
    }

    /// Whether the term is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Takes one event, and says what is to be done. An ended tenure does nothing more.
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Action> {
        let mut todo = Vec::new();
        if self.over {
            return todo;
        }
        // The deadline is enforced before anything that arrives late is even looked at (I4).
        if now < self.trusted_until {
            self.take(now, event, &mut todo);
        }
        self.settle(now, &mut todo);
        todo
    }

    fn take(&mut self, now: Moment, event: Event, todo: &mut Vec<Action>) {
        match event {
            Event::Wake => {}
            Event::Pulse(at) => self.last_pulse = self.last_pulse.max(at),
            Event::Outranked(stale) => self.end(LostCause::Stale(stale), todo),
            Event::Doubted => self.doubted = true,
            Event::Answered { sent, answer } => {
                let current = self.in_flight.is_some_and(|attempt| attempt.sent == sent);
                if current {
                    self.in_flight = None;
                }
                match answer {
                    // Also an answer to an attempt that was given up: the store did renew it, counted from its sending.
                    // But one that adds nothing is old news, and ends no trouble that began since.
                    Answer::Renewed { remaining } => {
                        let until = self.timing.trusted_until(sent, remaining);
                        if current || until > self.trusted_until {
                            self.next_attempt = self.next_attempt.max(sent.after(self.timing.renew_every()));
                            self.retry.reset();
                            self.trouble = None;
                            self.renewed(until, remaining, todo);
                        }
                    }
                    Answer::NotHolder(answer) => self.end(LostCause::NotHolder(answer), todo),
                    Answer::Failed(error) if current => self.failed(now, JeopardyCause::Store(error), todo),
                    Answer::Failed(_) => {}
                }
            }
        }
    }

    fn renewed(&mut self, until: Moment, remaining: Duration, todo: &mut Vec<Action>) {
        let asked = self.timing.ttl();
        if remaining > asked {
            todo.push(Action::Anomaly(Anomaly { asked, remaining }));
        }
        if until > self.trusted_until {
            self.trusted_until = until;
            todo.push(Action::Extend(until));
        }
        todo.push(Action::Announce(Standing::Held { until: self.trusted_until }));
    }

    fn failed(&mut self, now: Moment, cause: JeopardyCause, todo: &mut Vec<Action>) {
        // A third of what is left at most, so that more attempts fit; the floor keeps a failing store from being hammered.
        let floor = (self.timing.renew_every() / 16).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        let left = self.trusted_until.since(now);
        let delay = self.retry.next_delay().min(left / 3).max(floor);
        self.next_attempt = now.after(delay);
        let known = self.trouble.as_ref().is_some_and(|trouble| same_kind(trouble, &cause));
        self.trouble = Some(cause.clone());
        if !known {
            todo.push(Action::Announce(Standing::Jeopardy { until: self.trusted_until, cause }));
        }
    }

    /// What is due by the clock alone.
    fn settle(&mut self, now: Moment, todo: &mut Vec<Action>) {
        if self.over {
            return;
        }
        if now >= self.trusted_until {
            let wedged = self.trouble == Some(JeopardyCause::NoPulse);
            self.end(if wedged { LostCause::NoPulse } else { LostCause::Expired }, todo);
            return;
        }
        if let Some(attempt) = self.in_flight
            && now >= attempt.give_up_at
        {
            self.in_flight = None;
            let waited = attempt.give_up_at.since(attempt.sent);
            let silence = StoreError::new(StoreErrorKind::TimedOut(waited), Verb::Renew, "its store");
            self.failed(now, JeopardyCause::Store(silence), todo);
        }
        let is_due = now >= self.next_attempt;
        if self.in_flight.is_none() && (is_due || self.doubted) {
            self.doubted = false;
            if self.max_silence.is_some_and(|max| now.since(self.last_pulse) > max) {
                // Not even to ask: a renewal would lengthen the lease of a worker that does not move.
                if is_due {
                    self.failed(now, JeopardyCause::NoPulse, todo);
                }
            } else {
                // A third of what is left, so that others find room; all of it when that would be too little.
                let left = self.trusted_until.since(now);
                let give_up_after = (left / 3).max(SHORTEST_ATTEMPT).min(left);
                self.in_flight = Some(Attempt { sent: now, give_up_at: now.after(give_up_after) });
                todo.push(Action::Renew { sent: now, give_up_after });
            }
        }
        let last_call_at = self.trusted_until.before(self.timing.grace());
        let grace_counts = !self.timing.grace().is_zero() && !self.last_call_made;
        if grace_counts && now >= last_call_at {
            self.last_call_made = true;
            todo.push(Action::LastCall { within: self.trusted_until.since(now) });
        }
        let next_try = self.in_flight.map_or(self.next_attempt, |attempt| attempt.give_up_at);
        let mut wake = next_try.min(self.trusted_until);
        if grace_counts && !self.last_call_made {
            wake = wake.min(last_call_at);
        }
        todo.push(Action::WakeAt(wake));
    }

    fn end(&mut self, cause: LostCause, todo: &mut Vec<Action>) {
        self.over = true;
        todo.push(Action::Announce(Standing::Lost { cause: cause.clone() }));
        todo.push(Action::End(cause));
    }
}

/// A silent store is one trouble, though each attempt waited for another length of time.
fn same_kind(a: &JeopardyCause, b: &JeopardyCause) -> bool {
    match (a, b) {
        (JeopardyCause::Store(a), JeopardyCause::Store(b)) => {
            discriminant(a.kind()) == discriminant(b.kind())
        }
        (a, b) => a == b,
    }
}
