//! Driving [`Tenure`], and the work that is done under it.

use super::World;
use crate::{
    history::What,
    simulation::{
        Mutant,
        node::{Leading, Note, Pending, Role, Unit},
        store::Request,
    },
};
use leasehold_core::{
    Fence, Granted, LeaseRecord, Moment, Note as Left, Parting, Renew, Renewal,
    handoff::{incumbent, successor},
    tenure::{Action, Answer, Event, Tenure},
};

impl World {
    pub(super) fn begin_term(&mut self, node: usize, sent: Moment, granted: Granted) {
        let now = self.local(node);
        let counts_from = if self.setup.mutant == Some(Mutant::DeadlineFromReply) { now } else { sent };
        let Granted { claim, remaining, .. } = granted;
        let seed = self.dice.number();
        let (tenure, todo) = Tenure::begin(self.setup.timing, counts_from, remaining, now, seed);
        let fence = claim.fence;
        let over = tenure.is_over();
        self.nodes[node].role =
            Role::Leading(Box::new(Leading { tenure, claim, unit: None, leaving: false, incumbent: None }));
        if !over {
            self.log(node, fence.get(), What::WorkerBegan);
            self.succeed(node, successor::Event::Granted(fence));
            self.note_at(node, self.now, Note::BeginWork { fence });
        }
        self.act(node, todo);
    }

    /// Something happens to a term.
    pub(super) fn hold(&mut self, node: usize, event: Event) {
        let now = self.local(node);
        let Role::Leading(term) = &mut self.nodes[node].role else { return };
        let todo = term.tenure.step(now, event);
        self.act(node, todo);
    }

    pub(super) fn renewal_answered(&mut self, node: usize, sent: Moment, fence: Fence, answer: Renew) {
        let now = self.local(node);
        let Role::Leading(term) = &self.nodes[node].role else { return };
        if term.claim.fence != fence {
            return;
        }
        let sent = if self.setup.mutant == Some(Mutant::DeadlineFromReply) { now } else { sent };
        let answer = match answer {
            Renew::Renewed { remaining } => Answer::Renewed { remaining },
            Renew::NotHolder(answer) => Answer::NotHolder(answer),
            Renew::Refused(error) | Renew::Unknown(error) => Answer::Failed(error),
        };
        self.hold(node, Event::Answered { sent, answer });
    }

    fn act(&mut self, node: usize, todo: Vec<Action>) {
        for action in todo {
            let Role::Leading(term) = &self.nodes[node].role else { return };
            let fence = term.claim.fence.get();
            match action {
                Action::Renew { sent, .. } => {
                    let renewal = Renewal { claim: term.claim.clone(), ttl: self.setup.timing.ttl() };
                    let pending = Pending::Renewal { sent, fence: term.claim.fence };
                    // The tenure itself gives an attempt up; an answer that comes late is still told to it.
                    self.send(node, Request::Renew(renewal), pending, None);
                }
                Action::Extend(until) => {
                    let until = self.nodes[node].clock.reaches(until);
                    self.log(node, fence, What::Trusted { until });
                }
                Action::Anomaly(anomaly) => panic!("the simulated store keeps its clock: {anomaly:?}"),
                Action::WakeAt(moment) => self.wake_at(node, moment),
                Action::Announce(_) | Action::LastCall { .. } => {}
                Action::End(_) => self.lose(node),
            }
        }
    }

    /// The term is over: its worker is killed, and the replica campaigns again.
    fn lose(&mut self, node: usize) {
        self.hand(node, incumbent::Event::Lost);
        let Role::Leading(term) = std::mem::replace(&mut self.nodes[node].role, Role::Resting) else {
            return;
        };
        let fence = term.claim.fence.get();
        self.log(node, fence, What::RenewerEnded);
        if let Some(unit) = term.unit {
            self.log(node, fence, What::Worked { from: unit.from });
        }
        self.log(node, fence, What::WorkerEnded);
        self.log(node, fence, What::Lost);
        if self.setup.mutant != Some(Mutant::OneShotCandidate) {
            let rest = self.dice.between(std::time::Duration::ZERO, self.setup.timing.ttl() / 20);
            self.note_at(node, self.now + rest.as_nanos() as u64, Note::Rested);
        }
    }

    /// Begins a unit of work, if the clock allows it: the check at the point of use.
    pub(super) fn begin_work(&mut self, node: usize, fence: Fence) {
        let now = self.local(node);
        let ttl = self.setup.timing.ttl();
        let lasts = self.dice.between(ttl / 100, ttl / 8).as_nanos() as u64;
        let Role::Leading(term) = &mut self.nodes[node].role else { return };
        if term.claim.fence != fence || term.leaving || now >= term.tenure.trusted_until() {
            return;
        }
        self.units += 1;
        let unit = self.units;
        term.unit = Some(Unit { number: unit, from: self.now });
        self.note_at(node, self.now + lasts, Note::EndWork { unit });
    }

    /// The unit of work is done, and its result is written. Nothing is checked any more: whoever was paused in between
    /// writes late, and the fence has to stop it.
    pub(super) fn end_work(&mut self, node: usize, unit: u64) {
        let ttl = self.setup.timing.ttl();
        let pause = self.dice.between(ttl / 40, ttl / 10).as_nanos() as u64;
        let Role::Leading(term) = &mut self.nodes[node].role else { return };
        let Some(done) = term.unit.take_if(|running| running.number == unit) else { return };
        let (claim, leaving) = (term.claim.clone(), term.leaving);
        let handing = term.incumbent.as_ref().is_some_and(|incumbent| incumbent.handoff().is_some());
        self.log(node, claim.fence.get(), What::Worked { from: done.from });
        self.write(node, &claim);
        if leaving && handing {
            self.join(node);
        } else if leaving {
            self.release(node);
        } else {
            self.note_at(node, self.now + pause, Note::BeginWork { fence: claim.fence });
        }
    }

    /// A state of the lease was seen, perhaps an old one.
    pub(super) fn sighted(&mut self, node: usize, record: LeaseRecord) {
        self.sighted_in_handoff(node, &record);
        match &self.nodes[node].role {
            Role::Parting(_) => {}
            Role::Leading(term) => {
                let is_older = record.counter.is_some_and(|counter| counter < term.claim.fence);
                if record.claim() != Some(&term.claim) && !is_older {
                    self.hold(node, Event::Doubted);
                }
            }
            Role::Down | Role::Campaigning(_) | Role::Resting => {
                self.campaign(node, leasehold_core::campaign::Event::Sighted(record));
            }
        }
    }

    /// Gives the lease up on purpose, after the present unit of work.
    pub(super) fn step_down(&mut self, node: usize) {
        let Role::Leading(term) = &mut self.nodes[node].role else { return };
        if term.leaving || term.incumbent.is_some() {
            return;
        }
        term.leaving = true;
        if term.unit.is_none() || self.setup.mutant == Some(Mutant::ReleaseBeforeJoin) {
            self.release(node);
        }
    }

    fn release(&mut self, node: usize) {
        let with_note = self.dice.per_mille(500);
        let heir = self.dice.per_mille(300).then(|| self.dice.below(self.nodes.len() as u64) as usize);
        let heir = heir.map(|heir| (self.nodes[heir].replica.clone(), self.setup.timing.ttl() / 2));
        let Role::Leading(term) = &self.nodes[node].role else { return };
        let (claim, working) = (term.claim.clone(), term.unit.is_some());
        let fence = claim.fence.get();
        if !working {
            self.log(node, fence, What::WorkerEnded);
            self.log(node, fence, What::RenewerEnded);
            self.nodes[node].role = Role::Resting;
        }
        self.log(node, fence, What::Releasing { note: with_note });
        let note = with_note.then(|| Left::new(claim.fence, fence.to_le_bytes()).expect("a small note"));
        let parting = Parting { heir, note, ..Parting::default() };
        self.send(node, Request::Release(claim, parting), Pending::Release, None);
        if !working {
            self.log(node, 0, What::Unwanted);
            if self.setup.mutant != Some(Mutant::OneShotCandidate) {
                let rest = self.dice.between(self.setup.timing.ttl() / 10, self.setup.timing.ttl());
                self.note_at(node, self.now + rest.as_nanos() as u64, Note::Rested);
            }
        }
    }
}
