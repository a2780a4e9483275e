//! Taking over: the successor's side of a handoff.
//!
//! ```text
//!                propose            warmed up
//!  Candidate ──────────────► Warming ───────────► Ready
//!      ▲  ▲                     │ unfit             │
//!      │  └─────────────────────┴───────────────────┘ abort, silence, another holder
//!      └── granted: the campaign has won; Assumed is sent
//! ```
//!
//! It never takes the lease: that is the campaign's, by a bid of its own, so that trust counts from its own request. This
//! machine warms up when asked to, and says when a bid will likely be granted. `Yours` is such a hint and no grant; the
//! reservation in the record is another, for when `Yours` is lost. A crash here costs the others the time-outs and no more.

mod event;

pub use event::{Action, Event};

use super::{HandoffId, Letter, Message};
use crate::{Fence, LeaseName, LeaseRecord, LeaseState, Moment, ReplicaId, TraceContext};
use std::{sync::Arc, time::Duration};

/// Ready to take over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Successor {
    me: ReplicaId,
    lease: LeaseName,
    willing: bool,
    // The highest fence that the record showed: a handoff of a term below it is over.
    highest: Option<Fence>,
    // Who was seen to hold it, and under which fence: of that term, a proposal by anybody else is forged.
    holder: Option<(ReplicaId, Fence)>,
    engaged: Option<Engagement>,
    // The handoff that ended here last: its late letters are not taken for news.
    over: Option<HandoffId>,
    // The reservation that was bid for last, by the fence of the term that made it: one hint a reservation.
    hinted: Option<Fence>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Engagement {
    handoff: HandoffId,
    with: ReplicaId,
    fence: Fence,
    trace: TraceContext,
    until: Moment,
    ready: bool,
    stay: Duration,
}

impl Successor {
    /// A candidate for `lease`, willing to take over.
    #[must_use]
    pub const fn new(me: ReplicaId, lease: LeaseName) -> Self {
        Self {
            me,
            lease,
            willing: true,
            highest: None,
            holder: None,
            engaged: None,
            over: None,
            hinted: None,
        }
    }

    /// The handoff that it takes part in.
    #[must_use]
    pub fn handoff(&self) -> Option<HandoffId> {
        self.engaged.as_ref().map(|engaged| engaged.handoff)
    }

    /// Takes one event, and says what is to be done.
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Action> {
        let mut todo = Vec::new();
        match event {
            Event::Wake => {}
            Event::Letter { from, letter } => self.letter(now, from, &letter, &mut todo),
            Event::WarmedUp(handoff) => self.warmed_up(now, handoff, &mut todo),
            Event::Unfit { handoff, why } if self.handoff() == Some(handoff) => {
                self.decline(now, why, &mut todo);
            }
            Event::Unfit { .. } => {}
            Event::Willing => self.willing = true,
            Event::Unwilling { why } => {
                self.willing = false;
                self.decline(now, why, &mut todo);
            }
            Event::Sighted(record) => self.sighted(&record, &mut todo),
            Event::Granted(fence) => self.granted(now, fence, &mut todo),
        }
        if let Some(engaged) = &self.engaged {
            if now < engaged.until {
                todo.push(Action::WakeAt(engaged.until));
            } else {
                // The incumbent has given up, or died: back in line.
                self.stand_down(&mut todo);
            }
        }
        todo
    }

    fn letter(&mut self, now: Moment, from: ReplicaId, letter: &Letter, todo: &mut Vec<Action>) {
        let stale = self.highest.is_some_and(|highest| letter.fence < highest);
        let forged =
            self.holder.as_ref().is_some_and(|(holder, fence)| *fence == letter.fence && *holder != from);
        if letter.lease != self.lease
            || from == self.me
            || stale
            || forged
            || self.over == Some(letter.handoff)
        {
            return;
        }
        let current = self.engaged.as_ref().filter(|e| e.handoff == letter.handoff && e.with == from);
        match (&letter.message, current) {
            // Asked again: the answer may have been lost.
            (Message::Propose { .. }, Some(engaged)) if engaged.ready => {
                self.reply(now, Message::Ready, todo);
            }
            (Message::Propose { stay }, None) => self.proposed(now, from, letter, *stay, todo),
            (Message::Yours, Some(_)) => todo.push(Action::Bid),
            // We were asked before a restart, perhaps, or our wait is over: the record will say whether it is ours.
            (Message::Yours, None) if self.engaged.is_none() => {
                self.over = Some(letter.handoff);
                todo.push(Action::Bid);
            }
            (Message::Abort, Some(_)) => self.stand_down(todo),
            // It overtook the proposal, which must not be taken up any more.
            (Message::Abort, None) if self.engaged.is_none() => self.over = Some(letter.handoff),
            _ => {}
        }
    }

    fn proposed(
        &mut self,
        now: Moment,
        from: ReplicaId,
        letter: &Letter,
        stay: Duration,
        todo: &mut Vec<Action>,
    ) {
        // Two handoffs of one term, or of two: the later term counts, and of one term the later proposal.
        if self.engaged.as_ref().is_some_and(|engaged| letter.fence < engaged.fence) {
            return;
        }
        self.stand_down(todo);
        let until = now.after(letter.remaining);
        let within = letter.remaining;
        self.engaged = Some(Engagement {
            handoff: letter.handoff,
            with: from,
            fence: letter.fence,
            trace: letter.trace.clone(),
            until,
            ready: false,
            stay,
        });
        if self.willing {
            todo.push(Action::WarmUp { handoff: letter.handoff, within, trace: letter.trace.clone() });
        } else {
            self.decline(now, "not willing to lead now".into(), todo);
        }
    }

    fn warmed_up(&mut self, now: Moment, handoff: HandoffId, todo: &mut Vec<Action>) {
        if let Some(engaged) = self.engaged.as_mut().filter(|e| e.handoff == handoff && now < e.until) {
            engaged.ready = true;
            self.reply(now, Message::Ready, todo);
        }
    }

    fn sighted(&mut self, record: &LeaseRecord, todo: &mut Vec<Action>) {
        if record.name != self.lease {
            return;
        }
        self.highest = self.highest.max(record.counter);
        if let LeaseState::Held { claim, .. } = &record.state {
            self.holder = Some((claim.replica.clone(), claim.fence));
        }
        match (&record.state, record.counter) {
            (LeaseState::Reserved { heir, .. }, Some(fence)) if *heir == self.me => self.hint(fence, todo),
            // Somebody's new term: what was proposed under the old one is over.
            (LeaseState::Held { claim, .. }, _) if claim.replica != self.me => self.outrun(claim.fence, todo),
            _ => {}
        }
    }

    fn granted(&mut self, now: Moment, fence: Fence, todo: &mut Vec<Action>) {
        self.highest = self.highest.max(Some(fence));
        if self.engaged.as_ref().is_some_and(|engaged| fence > engaged.fence) {
            self.reply(now, Message::Assumed { fence }, todo);
            // What was warmed up is in use now.
            if let Some(engaged) = self.engaged.take() {
                self.over = Some(engaged.handoff);
                if !engaged.stay.is_zero() {
                    todo.push(Action::Stay { at_least: engaged.stay });
                }
            }
        }
    }

    fn outrun(&mut self, fence: Fence, todo: &mut Vec<Action>) {
        if self.engaged.as_ref().is_some_and(|engaged| fence > engaged.fence) {
            self.stand_down(todo);
        }
    }

    fn hint(&mut self, fence: Fence, todo: &mut Vec<Action>) {
        if self.hinted.is_none_or(|hinted| hinted < fence) {
            self.hinted = Some(fence);
            todo.push(Action::Bid);
        }
    }

    fn decline(&mut self, now: Moment, why: Arc<str>, todo: &mut Vec<Action>) {
        self.reply(now, Message::Decline { why }, todo);
        self.stand_down(todo);
    }

    fn reply(&self, now: Moment, message: Message, todo: &mut Vec<Action>) {
        todo.extend(self.engaged.as_ref().map(|engaged| Action::Send {
            to: engaged.with.clone(),
            letter: Letter {
                handoff: engaged.handoff,
                lease: self.lease.clone(),
                fence: engaged.fence,
                remaining: engaged.until.since(now),
                trace: engaged.trace.clone(),
                message,
            },
        }));
    }

    fn stand_down(&mut self, todo: &mut Vec<Action>) {
        if let Some(engaged) = self.engaged.take() {
            self.over = Some(engaged.handoff);
            todo.push(Action::StandDown { handoff: engaged.handoff });
        }
    }
}
