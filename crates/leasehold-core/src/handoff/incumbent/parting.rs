//! From the worker's last unit to the successor's first.

use super::{Action, Answer, Ending, Incumbent, Message, Stage, Step, Vacated};
use crate::{Fence, Moment, ReplicaId};

impl Incumbent {
    /// Asks the worker to finish; in vain if no time is left, then it is killed at once.
    pub(super) fn quiesce(&mut self, now: Moment, heir: Option<ReplicaId>, todo: &mut Vec<Action>) {
        let Some(course) = &mut self.course else { return };
        // Of a long time, the worker has its part only.
        course.until = course.until.min(now.after(self.plan.quiesce));
        let within = course.until.since(now);
        course.stage = Stage::Quiescing { heir };
        todo.push(Action::Tell(Step::Quiescing));
        if !within.is_zero() {
            todo.push(Action::Quiesce { within });
        }
    }

    pub(super) fn resumed(&mut self, todo: &mut Vec<Action>) {
        if let Some(Stage::Resuming { why }) = self.course.as_ref().map(|course| &course.stage) {
            let why = *why;
            self.end(Ending::Aborted(why), todo);
        }
    }

    pub(super) fn kill(&mut self, now: Moment, heir: Option<ReplicaId>, todo: &mut Vec<Action>) {
        let until = now.after(self.plan.join);
        if let Some(course) = &mut self.course {
            // Its time is over; nothing is released for it, only its end is no longer waited for politely.
            course.stage = Stage::Joining { heir, until };
            todo.push(Action::KillWorker);
        }
    }

    /// The only gate to the release (I6).
    pub(super) fn joined(&mut self, now: Moment, todo: &mut Vec<Action>) {
        let until = now.after(self.plan.commit);
        let Some(course) = &mut self.course else {
            // It ended by itself, and its holder releases as after any term.
            self.over = true;
            return;
        };
        let heir = match &mut course.stage {
            Stage::Quiescing { heir } | Stage::Joining { heir, .. } => heir.take(),
            Stage::Resuming { .. } => None,
            // It ended before a successor was ready, who may be now: the record will tell it.
            Stage::Choosing { .. } => {
                self.abandon(now, todo);
                None
            }
            // Told twice.
            Stage::Committing { .. } | Stage::Assuming { .. } => return,
        };
        let Some(course) = &mut self.course else { return };
        course.stage = Stage::Committing { heir, until, retry_at: None, in_doubt: false };
        todo.extend([Action::Tell(Step::Joined), Action::EndRenewals]);
        self.release(todo);
    }

    pub(super) fn release(&mut self, todo: &mut Vec<Action>) {
        let Some(course) = &mut self.course else { return };
        if let Stage::Committing { heir, retry_at, .. } = &mut course.stage {
            *retry_at = None;
            let heir = heir.clone().map(|heir| (heir, self.plan.window));
            todo.push(Action::Release { heir });
        }
    }

    pub(super) fn parted(&mut self, now: Moment, answer: Answer, todo: &mut Vec<Action>) {
        let Some(course) = &mut self.course else { return };
        let Stage::Committing { heir, retry_at, in_doubt, .. } = &mut course.stage else { return };
        match answer {
            Answer::Refused | Answer::Unknown => {
                *in_doubt |= answer == Answer::Unknown;
                *retry_at = Some(now.after(self.plan.retry));
            }
            // Never ours to release: it was lost before.
            Answer::NotHolder(_) if !*in_doubt => self.end(Ending::Released(Vacated::Lost), todo),
            // Over by the release that was in doubt, or by its expiry just then: the heir may bid either way.
            Answer::Released | Answer::NotHolder(_) => {
                let heir = heir.take();
                todo.push(Action::Tell(Step::Released(heir.clone())));
                let Some(heir) = heir else {
                    self.end(Ending::Released(Vacated::ToAnyone), todo);
                    return;
                };
                let until = now.after(self.plan.window);
                course.stage = Stage::Assuming { heir: heir.clone(), until, looked: false };
                if let Answer::NotHolder(Some(holder)) = answer {
                    return self.sighted(Some(holder), todo);
                }
                self.send(now, heir, Message::Yours, todo);
            }
        }
    }

    /// The record says more than any letter.
    pub(super) fn sighted(&mut self, holder: Option<(ReplicaId, Fence)>, todo: &mut Vec<Action>) {
        let Some(Stage::Assuming { heir, looked, .. }) = self.course.as_ref().map(|course| &course.stage)
        else {
            return;
        };
        match holder {
            // An old sighting: of our own term, or of one before.
            Some((_, fence)) if fence <= self.fence => {}
            Some((to, fence)) if to == *heir => self.end(Ending::Done { to, fence }, todo),
            Some(_) => self.end(Ending::Released(Vacated::TakenByAnother), todo),
            None if *looked => self.end(Ending::Released(Vacated::NotTaken), todo),
            None => {}
        }
    }
}
