//! Finding a successor.

use super::{
    Action, Ask, Course, Ending, HandoffId, Incumbent, Kept, Line, Message, Otherwise, Stage, Step, To,
};
use crate::{Moment, ReplicaId};
use std::time::Duration;

/// Nobody plans further.
const LONGEST_WITHIN: Duration = Duration::from_hours(1);

impl Incumbent {
    pub(super) fn choose(&mut self, now: Moment, id: HandoffId, ask: Ask, todo: &mut Vec<Action>) {
        let within = ask.within.min(LONGEST_WITHIN);
        let until = now.after(within);
        let choose_until = until.before(self.plan.reserve(within));
        let to_itself = ask.to == To::Replica(self.me.clone());
        let stage = Stage::Choosing { line: Line::default(), until: choose_until };
        self.course = Some(Course { id, ask, until, stage });
        if to_itself {
            self.nobody(now, Kept::ToItself, todo);
        } else if now >= choose_until {
            self.nobody(now, Kept::NoTime, todo);
        } else {
            todo.push(Action::ReadRoster);
        }
    }

    pub(super) fn roster(&mut self, now: Moment, roster: Option<Vec<ReplicaId>>, todo: &mut Vec<Action>) {
        let Some(course) = &mut self.course else { return };
        let Stage::Choosing { line, .. } = &mut course.stage else { return };
        if line.asked.is_some() {
            // Read twice: those who are asked already stay in line.
            return;
        }
        let mut ranked = Vec::new();
        let why = match (&course.ask.to, roster) {
            (To::Replica(named), Some(roster)) => {
                ranked.extend(roster.contains(named).then(|| named.clone()));
                Kept::NotACandidate
            }
            // Nobody knows whether it is there: its answer will tell.
            (To::Replica(named), None) => {
                ranked.push(named.clone());
                Kept::NotACandidate
            }
            (To::Anyone, roster) => {
                for replica in roster.unwrap_or_default() {
                    // Two processes with one id have one inbox.
                    if replica != self.me && !ranked.contains(&replica) {
                        ranked.push(replica);
                    }
                }
                Kept::NoCandidates
            }
        };
        ranked.reverse();
        line.left = ranked;
        if line.left.is_empty() { self.nobody(now, why, todo) } else { self.next(now, todo) }
    }

    /// Asks the next one in line.
    pub(super) fn next(&mut self, now: Moment, todo: &mut Vec<Action>) {
        let silent_at = now.after(self.plan.answer);
        let Some(course) = &mut self.course else { return };
        let propose = Message::Propose { stay: course.ask.stay };
        let Stage::Choosing { line, .. } = &mut course.stage else { return };
        match line.left.pop() {
            Some(replica) => {
                line.asked = Some((replica.clone(), silent_at));
                todo.push(Action::Tell(Step::Proposed(replica.clone())));
                self.send(now, replica, propose, todo);
            }
            None => {
                // It declined: there is nothing to tell it.
                line.asked = None;
                self.nobody(now, Kept::NobodyReady, todo);
            }
        }
    }

    /// Whoever is asked did not answer in its time.
    pub(super) fn silent(&mut self, now: Moment, todo: &mut Vec<Action>) {
        let silent_at = now.after(self.plan.answer);
        let Some(course) = &mut self.course else { return };
        let propose = Message::Propose { stay: course.ask.stay };
        let Stage::Choosing { line, .. } = &mut course.stage else { return };
        let Some((replica, at)) = &mut line.asked else { return };
        let replica = replica.clone();
        if line.left.is_empty() {
            // Nobody comes after it: it is asked again, for a letter may have been lost, until the time is over.
            *at = silent_at;
            self.send(now, replica, propose, todo);
        } else {
            todo.push(Action::Tell(Step::Silent(replica)));
            self.abandon(now, todo);
            self.next(now, todo);
        }
    }

    /// There is no successor.
    pub(super) fn nobody(&mut self, now: Moment, why: Kept, todo: &mut Vec<Action>) {
        self.abandon(now, todo);
        match self.course.as_ref().map(|course| course.ask.otherwise) {
            Some(Otherwise::LeadOn) => self.end(Ending::Aborted(why), todo),
            Some(Otherwise::Leave) => self.quiesce(now, None, todo),
            None => {}
        }
    }
}
