//! Driving [`Incumbent`] and [`Successor`]: leadership handed over through the same bad network.

use super::World;
use crate::{
    history::What,
    simulation::{
        Mutant,
        node::{Note, Parting, Pending, Role},
        store::Request,
    },
};
use leasehold_core::{
    Fence, LeaseRecord, Note as Left, Parting as Leaves, Release, ReplicaId, TraceContext, campaign,
    handoff::{
        Ask, Ending, HandoffId, Incumbent, Letter, Otherwise, Plan, Successor, To,
        incumbent::{Action, Answer, Event},
        successor,
    },
};
use std::time::Duration;

impl World {
    /// A process begins: it would take over if asked.
    pub(super) fn begin_succession(&mut self, node: usize) {
        let me = self.nodes[node].replica.clone();
        self.nodes[node].successor = Successor::new(me, self.name.clone());
    }

    /// The leader is asked to hand over, to anyone or to somebody, perhaps to itself; perhaps it must leave in any case.
    pub(super) fn hand_off(&mut self, node: usize) {
        let ttl = self.setup.timing.ttl();
        let named = self.dice.below(self.nodes.len() as u64 * 2) as usize;
        let to = self.nodes.get(named).map_or(To::Anyone, |named| To::Replica(named.replica.clone()));
        let ask = Ask {
            to,
            within: self.dice.between(Duration::ZERO, ttl),
            otherwise: if self.dice.per_mille(400) { Otherwise::Leave } else { Otherwise::LeadOn },
            stay: Duration::ZERO,
            by: "the simulation".into(),
            reason: "a deploy".into(),
            trace: TraceContext::NONE,
        };
        let id = HandoffId::from_u128(u128::from(self.dice.number()));
        let plan = Plan {
            answer: ttl / 8,
            quiesce: ttl / 2,
            join: ttl / 8,
            commit: ttl / 2,
            retry: ttl / 10,
            window: ttl / 2,
        };
        let (me, name) = (self.nodes[node].replica.clone(), self.name.clone());
        let Role::Leading(term) = &mut self.nodes[node].role else { return };
        if term.incumbent.is_none() && term.leaving {
            return;
        }
        term.incumbent.get_or_insert_with(|| Incumbent::new(me, name, term.claim.fence, plan));
        self.hand(node, Event::Asked { id, ask });
    }

    /// Something happens to a handoff, at the incumbent.
    pub(super) fn hand(&mut self, node: usize, event: Event) {
        let now = self.local(node);
        let todo = match &mut self.nodes[node].role {
            Role::Leading(term) => term.incumbent.as_mut().map(|incumbent| incumbent.step(now, event)),
            Role::Parting(parting) => Some(parting.incumbent.step(now, event)),
            Role::Down | Role::Campaigning(_) | Role::Resting => None,
        };
        for action in todo.into_iter().flatten() {
            self.let_go(node, action);
        }
    }

    fn let_go(&mut self, node: usize, action: Action) {
        match action {
            Action::ReadRoster => {
                let roster = self.roster.iter().map(|n| self.nodes[*n].replica.clone()).collect::<Vec<_>>();
                let roster = (!self.dice.per_mille(50)).then_some(roster);
                for at in self.arrivals(node) {
                    self.note_at(node, at, Note::Roster(roster.clone()));
                }
            }
            Action::Send { to, letter } => self.post(node, &to, &letter),
            Action::Quiesce { .. } => {
                let Role::Leading(term) = &mut self.nodes[node].role else { return };
                term.leaving = true;
                if term.unit.is_none() {
                    self.join(node);
                }
            }
            Action::Resume => {
                let Role::Leading(term) = &mut self.nodes[node].role else { return };
                term.leaving = false;
                let fence = term.claim.fence;
                if term.unit.is_none() {
                    self.note_at(node, self.now, Note::BeginWork { fence });
                }
                self.note_at(node, self.now, Note::Resumed);
            }
            Action::KillWorker => {
                let Role::Leading(term) = &mut self.nodes[node].role else { return };
                term.leaving = true;
                let (unit, fence) = (term.unit.take(), term.claim.fence.get());
                if let Some(unit) = unit {
                    self.log(node, fence, What::Worked { from: unit.from });
                }
                self.join(node);
            }
            // By the join, which is at once here.
            Action::EndRenewals => {}
            Action::Release { heir } => self.part(node, heir),
            Action::Look => {
                let within = self.setup.timing.ttl() / 8;
                self.send(node, Request::Look, Pending::LookForHeir, Some(within));
            }
            Action::WakeAt(moment) => {
                self.nodes[node].handoff_timer += 1;
                let timer = self.nodes[node].handoff_timer;
                let at = self.nodes[node].clock.reaches(moment);
                self.note_at(node, at, Note::HandoffWake { timer });
            }
            Action::Tell(_) | Action::Joins { .. } | Action::Refuse { .. } => {}
            Action::End { ending, .. } => self.handed(node, &ending),
        }
    }

    /// The worker has ended, and with it what renews: from here on nothing but the release is left of the term.
    pub(super) fn join(&mut self, node: usize) {
        let Role::Leading(term) = std::mem::replace(&mut self.nodes[node].role, Role::Resting) else {
            return;
        };
        let fence = term.claim.fence.get();
        let Some(incumbent) = term.incumbent else { return };
        self.log(node, fence, What::WorkerEnded);
        self.log(node, fence, What::RenewerEnded);
        let note = self.dice.per_mille(500);
        let parting = Parting { incumbent, claim: term.claim, note, asked: false };
        self.nodes[node].role = Role::Parting(Box::new(parting));
        // Not before what else the machine wanted done was done.
        self.note_at(node, self.now, Note::Joined);
    }

    fn part(&mut self, node: usize, heir: Option<(ReplicaId, Duration)>) {
        let Role::Parting(parting) = &mut self.nodes[node].role else { return };
        let (claim, with_note) = (parting.claim.clone(), parting.note);
        let repeated = std::mem::replace(&mut parting.asked, true);
        let fence = claim.fence.get();
        if !repeated {
            self.log(node, fence, What::Releasing { note: with_note });
            self.log(node, 0, What::Unwanted);
        }
        let note = with_note.then(|| Left::new(claim.fence, fence.to_le_bytes()).expect("a small note"));
        let leaves = Leaves { heir, note, ..Leaves::default() };
        let within = self.setup.timing.ttl() / 8;
        self.send(node, Request::Release(claim, leaves), Pending::Parting, Some(within));
    }

    /// The store's answer to the release, or its silence.
    pub(super) fn parted(&mut self, node: usize, answer: Option<Release>) {
        let answer = match answer {
            Some(Release::Released) => Answer::Released,
            Some(Release::NotHolder(over)) => Answer::NotHolder(over.holder),
            Some(Release::Refused(_)) => Answer::Refused,
            Some(Release::Unknown(_)) | None => Answer::Unknown,
        };
        self.hand(node, Event::Parted(answer));
    }

    fn handed(&mut self, node: usize, ending: &Ending) {
        match &mut self.nodes[node].role {
            Role::Leading(term) => {
                term.incumbent = None;
                debug_assert!(!matches!(ending, Ending::Done { .. }), "a leader was replaced in its term");
            }
            Role::Parting(_) => {
                self.nodes[node].role = Role::Resting;
                if self.setup.mutant != Some(Mutant::OneShotCandidate) {
                    let rest = self.dice.between(Duration::ZERO, self.setup.timing.ttl() / 10);
                    self.note_at(node, self.now + rest.as_nanos() as u64, Note::Rested);
                }
                if let Ending::Done { fence, .. } = ending {
                    self.log(node, fence.get(), What::HandedOver);
                }
            }
            Role::Down | Role::Campaigning(_) | Role::Resting => {}
        }
    }

    fn post(&mut self, node: usize, to: &ReplicaId, letter: &Letter) {
        let from = self.nodes[node].replica.clone();
        let Some(reader) = self.nodes.iter().position(|node| node.replica == *to) else { return };
        for at in self.arrivals(node) {
            self.note_at(reader, at, Note::Letter { from: from.clone(), letter: letter.clone() });
        }
    }

    /// A letter, for one of the two machines; each passes over what is not for it.
    pub(super) fn letter(&mut self, node: usize, from: ReplicaId, letter: Letter) {
        if matches!(self.nodes[node].role, Role::Leading(_) | Role::Parting(_)) {
            self.hand(node, Event::Letter { from, letter });
        } else {
            self.succeed(node, successor::Event::Letter { from, letter });
        }
    }

    /// Something happens at the successor.
    pub(super) fn succeed(&mut self, node: usize, event: successor::Event) {
        let now = self.local(node);
        for action in self.nodes[node].successor.step(now, event) {
            match action {
                successor::Action::WarmUp { handoff, .. } => {
                    let ttl = self.setup.timing.ttl();
                    let lasts = self.dice.between(Duration::ZERO, ttl / 4).as_nanos() as u64;
                    let warm = !self.dice.per_mille(100);
                    self.note_at(node, self.now + lasts, Note::Warmed { handoff, warm });
                }
                successor::Action::Bid => match self.nodes[node].role {
                    Role::Campaigning(_) => self.campaign(node, campaign::Event::Invited),
                    Role::Resting => self.begin_campaign(node),
                    Role::Down | Role::Leading(_) | Role::Parting(_) => {}
                },
                successor::Action::Send { to, letter } => self.post(node, &to, &letter),
                successor::Action::WakeAt(moment) => {
                    self.nodes[node].succession_timer += 1;
                    let timer = self.nodes[node].succession_timer;
                    let at = self.nodes[node].clock.reaches(moment);
                    self.note_at(node, at, Note::SuccessionWake { timer });
                }
                successor::Action::StandDown { .. } | successor::Action::Stay { .. } => {}
            }
        }
    }

    /// Whose lease it is, as far as that concerns a handoff.
    pub(super) fn sighted_in_handoff(&mut self, node: usize, record: &LeaseRecord) {
        let holder: Option<(ReplicaId, Fence)> = record.claim().map(|c| (c.replica.clone(), c.fence));
        match self.nodes[node].role {
            Role::Parting(_) | Role::Leading(_) => self.hand(node, Event::Sighted(holder)),
            Role::Campaigning(_) | Role::Resting => {
                self.succeed(node, successor::Event::Sighted(record.clone()));
            }
            Role::Down => {}
        }
    }
}
