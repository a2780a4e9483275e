//! Letting go: the incumbent's side of a handoff.
//!
//! ```text
//!            asked            ready             its time over
//!  Leading ────────► Choosing ─────► Quiescing ───────────────► Joining
//!     ▲                 │             │   │  joined               │ joined
//!     │     nobody ready│    heir left│   └─────────► Committing ◄┘
//!     └─────────────────┴── Resuming ◄┘                   │ released
//!        aborted: it leads on, if that was asked          ▼
//!                                          done ◄───── Assuming ─────► released: anyone may lead
//! ```
//!
//! One machine for a term; it is the only thing that may ask for the release of a lease that is handed over. Renewals go on
//! until [`Event::Joined`]; [`Action::Release`] comes after it and never before (I6).

mod choosing;
mod event;
mod parting;
mod stage;

pub use event::{Action, Answer, Event, Refusal};

use super::{Ask, Ending, HandoffId, Kept, Letter, Message, Otherwise, Plan, Step, To, Vacated};
use crate::{Fence, LeaseName, Moment, ReplicaId};
use stage::{Course, Line, Stage};
use std::time::Duration;

/// Letting go of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Incumbent {
    me: ReplicaId,
    lease: LeaseName,
    fence: Fence,
    plan: Plan,
    course: Option<Course>,
    over: bool,
}

impl Incumbent {
    /// The incumbent of the term under `fence`. Its plan is held within its bounds (see [`Plan::new`]).
    #[must_use]
    pub fn new(me: ReplicaId, lease: LeaseName, fence: Fence, plan: Plan) -> Self {
        Self { me, lease, fence, plan: Plan::new(plan), course: None, over: false }
    }

    /// The handoff under way.
    #[must_use]
    pub fn handoff(&self) -> Option<HandoffId> {
        self.course.as_ref().map(|course| course.id)
    }

    /// Whether the term is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Takes one event, and says what is to be done. Once the term is over it does nothing but refuse asks.
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Action> {
        let mut todo = Vec::new();
        if self.over {
            if let Event::Asked { id, .. } = event {
                todo.push(Action::Refuse { id, why: Refusal::Over });
            }
            return todo;
        }
        match event {
            Event::Wake => {}
            Event::Asked { id, ask } => self.asked(now, id, ask, &mut todo),
            Event::Roster(roster) => self.roster(now, roster, &mut todo),
            Event::Letter { from, letter } => self.letter(now, &from, &letter, &mut todo),
            Event::Resumed => self.resumed(&mut todo),
            Event::Joined => self.joined(now, &mut todo),
            Event::Parted(answer) => self.parted(now, answer, &mut todo),
            Event::Sighted(holder) => self.sighted(holder, &mut todo),
            Event::Lost => self.lost(now, &mut todo),
        }
        self.settle(now, &mut todo);
        todo
    }

    fn asked(&mut self, now: Moment, id: HandoffId, ask: Ask, todo: &mut Vec<Action>) {
        let Some(course) = &self.course else { return self.choose(now, id, ask, todo) };
        let with = course.id;
        let resuming = matches!(course.stage, Stage::Resuming { .. });
        let leaves = ask.otherwise == Otherwise::Leave;
        // Whoever must leave takes what is under way; whoever wants somebody else must wait.
        let fits = !resuming && (ask.to == course.ask.to || matches!(ask.to, To::Anyone));
        if !leaves && !fits {
            todo.push(Action::Refuse { id, why: Refusal::Busy(with) });
            return;
        }
        todo.push(Action::Joins { id, with });
        if leaves {
            self.hurry(now, ask.within, resuming, todo);
        }
    }

    /// The process must leave in this time, whatever was asked before.
    fn hurry(&mut self, now: Moment, within: Duration, resuming: bool, todo: &mut Vec<Action>) {
        let reserve = self.plan.reserve(within);
        let Some(course) = &mut self.course else { return };
        course.ask.otherwise = Otherwise::Leave;
        course.until = course.until.min(now.after(within));
        let left = course.until.since(now);
        match &mut course.stage {
            Stage::Choosing { until, .. } => *until = (*until).min(course.until.before(reserve)),
            Stage::Quiescing { .. } if !left.is_zero() => todo.push(Action::Quiesce { within: left }),
            Stage::Resuming { .. } if resuming => self.quiesce(now, None, todo),
            _ => {}
        }
    }

    fn letter(&mut self, now: Moment, from: &ReplicaId, letter: &Letter, todo: &mut Vec<Action>) {
        let Some(course) = &mut self.course else { return };
        // Late, strange, or about another term: of no meaning here.
        let ours = letter.handoff == course.id && letter.lease == self.lease && letter.fence == self.fence;
        if !ours || course.partner() != Some(from) {
            return;
        }
        match (&letter.message, &mut course.stage) {
            (Message::Ready, Stage::Choosing { .. }) => {
                todo.push(Action::Tell(Step::Ready(from.clone())));
                self.quiesce(now, Some(from.clone()), todo);
            }
            (Message::Decline { why }, stage) => {
                todo.push(Action::Tell(Step::Declined(from.clone(), why.clone())));
                match stage {
                    Stage::Choosing { .. } => self.next(now, todo),
                    Stage::Quiescing { .. } if course.ask.otherwise == Otherwise::LeadOn => {
                        course.stage = Stage::Resuming { why: Kept::Withdrawn };
                        todo.extend([Action::Tell(Step::Resuming), Action::Resume]);
                    }
                    Stage::Quiescing { heir } | Stage::Joining { heir, .. } => *heir = None,
                    Stage::Assuming { .. } => self.end(Ending::Released(Vacated::Withdrawn), todo),
                    // It is on its way in this heir's favour already; its window will pass.
                    Stage::Committing { .. } | Stage::Resuming { .. } => {}
                }
            }
            (Message::Assumed { fence }, Stage::Assuming { .. }) if *fence > self.fence => {
                self.end(Ending::Done { to: from.clone(), fence: *fence }, todo);
            }
            // A reason to ask the store at once, not an answer from it (I7).
            (Message::Assumed { .. }, Stage::Committing { retry_at: Some(at), .. }) => *at = now,
            _ => {}
        }
    }

    fn lost(&mut self, now: Moment, todo: &mut Vec<Action>) {
        match self.course.as_ref().map(|course| &course.stage) {
            // Nobody works any more, and a release is conditional on the claim: its answer says more than our clock.
            Some(Stage::Committing { .. } | Stage::Assuming { .. }) => {}
            Some(_) => {
                self.abandon(now, todo);
                self.end(Ending::Released(Vacated::Lost), todo);
            }
            None => self.over = true,
        }
    }

    /// What is due by the clock alone. Each turn moves to another stage or to a later moment.
    fn settle(&mut self, now: Moment, todo: &mut Vec<Action>) {
        while let Some(course) = &mut self.course {
            let due = course.due();
            if now < due {
                todo.push(Action::WakeAt(due));
                return;
            }
            match &mut course.stage {
                Stage::Choosing { until, .. } if now >= *until => self.nobody(now, Kept::NobodyReady, todo),
                Stage::Choosing { .. } => self.silent(now, todo),
                Stage::Quiescing { heir } => {
                    let heir = heir.take();
                    self.kill(now, heir, todo);
                }
                // It neither goes on nor ends: nobody would lead for ever.
                Stage::Resuming { .. } => self.kill(now, None, todo),
                Stage::Joining { .. } => {
                    self.abandon(now, todo);
                    self.end(Ending::Released(Vacated::Overrun), todo);
                }
                Stage::Committing { until, .. } if now >= *until => {
                    self.end(Ending::Released(Vacated::Unsettled), todo);
                }
                Stage::Committing { .. } => self.release(todo),
                Stage::Assuming { until, looked, .. } if !*looked => {
                    // Its answer and the sighting may both have been lost.
                    *looked = true;
                    *until = now.after(self.plan.answer);
                    todo.push(Action::Look);
                }
                Stage::Assuming { .. } => self.end(Ending::Released(Vacated::NotTaken), todo),
            }
        }
    }

    fn write(&self, now: Moment, message: Message) -> Option<Letter> {
        let course = self.course.as_ref()?;
        let remaining = match &course.stage {
            Stage::Assuming { until, .. } => until.since(now),
            _ => course.until.since(now) + self.plan.after_quiesce(),
        };
        Some(Letter {
            handoff: course.id,
            lease: self.lease.clone(),
            fence: self.fence,
            remaining,
            trace: course.ask.trace.clone(),
            message,
        })
    }

    fn send(&self, now: Moment, to: ReplicaId, message: Message, todo: &mut Vec<Action>) {
        todo.extend(self.write(now, message).map(|letter| Action::Send { to, letter }));
    }

    /// Tells whoever was asked that nothing comes of it.
    fn abandon(&self, now: Moment, todo: &mut Vec<Action>) {
        if let Some(partner) = self.course.as_ref().and_then(Course::partner) {
            self.send(now, partner.clone(), Message::Abort, todo);
        }
    }

    fn end(&mut self, ending: Ending, todo: &mut Vec<Action>) {
        if let Some(course) = self.course.take() {
            self.over = !matches!(ending, Ending::Aborted(_));
            todo.push(Action::End { id: course.id, ending });
        }
    }
}
