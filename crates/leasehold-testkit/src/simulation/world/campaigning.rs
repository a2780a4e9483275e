//! Driving [`Campaign`].

use super::World;
use crate::{
    history::What,
    simulation::{
        Mutant,
        node::{Campaigning, Pending, Role},
        store::{Answer, Request},
    },
};
use leasehold_core::{
    Acquire, Bid, Fence, Granted, Moment, Parting, Predecessor, Release, Renew, StoreError, StoreErrorKind,
    TraceContext, Verb,
    campaign::{self, Action, Campaign, Event, Patience, Wish},
};
use std::time::Duration;

const ADDRESS: &str = "simulation:";

fn unreachable(verb: Verb) -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, verb, ADDRESS)
}

impl World {
    /// A process begins to want the lease.
    pub(super) fn begin_campaign(&mut self, node: usize) {
        self.log(node, 0, What::Wanted);
        let wish = Wish {
            me: self.nodes[node].replica.clone(),
            timing: self.setup.timing,
            patience: Patience::Forever,
            stride: self.setup.weather.usual * 2,
            floor: self.nodes[node].floor,
            seed: self.dice.number(),
        };
        let (campaign, todo) = Campaign::begin(wish);
        self.nodes[node].role = Role::Campaigning(Box::new(Campaigning { campaign, attempt: None }));
        self.pursue(node, todo);
    }

    /// Something happens to a campaign. Old news for whoever does not campaign any more.
    pub(super) fn campaign(&mut self, node: usize, event: Event) {
        let now = self.local(node);
        let Role::Campaigning(state) = &mut self.nodes[node].role else { return };
        let todo = state.campaign.step(now, event);
        let floor = state.campaign.floor();
        self.nodes[node].floor = floor.max(self.nodes[node].floor);
        self.pursue(node, todo);
    }

    fn pursue(&mut self, node: usize, todo: Vec<Action>) {
        for action in todo {
            match action {
                Action::Bid { fresh, floor } => self.bid(node, fresh, floor),
                Action::Look => {
                    let within = self.setup.timing.ttl().max(Duration::from_secs(1));
                    self.send(node, Request::Look, Pending::Look, Some(within.min(Duration::from_secs(5))));
                }
                Action::Enlist => self.enlist(node),
                Action::WakeAt(moment) => self.wake_at(node, moment),
                Action::Undo => {
                    let until = self.now + self.setup.timing.ttl().as_nanos() as u64;
                    let Role::Campaigning(state) = &mut self.nodes[node].role else { continue };
                    if let Some(attempt) = state.attempt.take() {
                        self.undo(node, Pending::Undo { attempt, until });
                    }
                }
                Action::Won { sent, granted } => self.won(node, sent, granted),
                Action::GiveUp(defeat) => panic!("a campaign for ever gave up: {defeat}"),
            }
        }
    }

    fn bid(&mut self, node: usize, fresh: bool, floor: Option<Fence>) {
        let sent = self.local(node);
        let fresh_attempt = self.dice.attempt();
        let Role::Campaigning(state) = &mut self.nodes[node].role else { return };
        let attempt = *match (&mut state.attempt, fresh) {
            (Some(attempt), false) => attempt,
            (attempt, _) => attempt.insert(fresh_attempt),
        };
        let timing = self.setup.timing;
        let bid = Bid {
            name: self.name.clone(),
            replica: self.nodes[node].replica.clone(),
            attempt,
            ttl: timing.ttl(),
            floor,
            crash_witness: self.setup.crash_witness,
            trace: TraceContext::NONE,
        };
        let within = match self.setup.mutant {
            // Long before its claim would have to end.
            Some(Mutant::UnknownIsSuccess) => timing.ttl() / 4,
            _ => timing.trust().min(Duration::from_secs(10)),
        };
        let request = Request::Acquire(bid);
        self.send(node, request.clone(), Pending::Bid { sent, request }, Some(within));
    }

    /// An answer has come, if anyone still waits for it.
    pub(super) fn answered(&mut self, node: usize, request: u64, answer: Answer) {
        let Some(pending) = self.nodes[node].pending.remove(&request) else { return };
        match (pending, answer) {
            (Pending::Bid { sent, .. }, Answer::Acquire(answer)) => {
                if let Acquire::Granted(granted) = &answer
                    && matches!(self.nodes[node].role, Role::Campaigning(_))
                {
                    let sent = self.nodes[node].clock.reaches(sent);
                    let inherited = granted.inherited.as_ref().map(|note| note.from().get());
                    self.log(node, granted.claim.fence.get(), What::Granted { sent, inherited });
                }
                let answer = match answer {
                    Acquire::Granted(granted) => campaign::Answer::Granted(granted),
                    Acquire::Held(held) => campaign::Answer::Held(held),
                    Acquire::Refused(error) => campaign::Answer::Refused(error),
                    Acquire::Unknown(error) => campaign::Answer::Unknown(error),
                };
                self.campaign(node, Event::Answered { sent, answer });
            }
            (Pending::Look, Answer::Look(record)) => self.campaign(node, Event::Sighted(record)),
            (Pending::Renewal { sent, fence }, Answer::Renew(answer)) => {
                self.renewal_answered(node, sent, fence, answer);
            }
            (Pending::Release, Answer::Release(_)) => {}
            (Pending::Parting, Answer::Release(answer)) => self.parted(node, Some(answer)),
            (Pending::LookForHeir, Answer::Look(record)) => self.sighted_in_handoff(node, &record),
            (Pending::Undo { attempt, until }, Answer::Look(record)) => {
                if let Some(claim) = record.claim()
                    && claim.attempt == attempt
                {
                    let release = Request::Release(claim.clone(), Parting::default());
                    self.send(
                        node,
                        release,
                        Pending::Undo { attempt, until },
                        Some(self.setup.timing.ttl() / 4),
                    );
                }
            }
            (Pending::Undo { .. }, Answer::Release(_)) => {}
            (Pending::Bid { sent, .. }, Answer::Refused) => {
                let answer = campaign::Answer::Refused(unreachable(Verb::Acquire));
                self.campaign(node, Event::Answered { sent, answer });
            }
            (Pending::Look, Answer::Refused) => {
                self.campaign(node, Event::LookFailed(unreachable(Verb::Inspect)));
            }
            (Pending::Renewal { sent, fence }, Answer::Refused) => {
                self.renewal_answered(node, sent, fence, Renew::Refused(unreachable(Verb::Renew)));
            }
            (Pending::Release | Pending::LookForHeir, Answer::Refused) => {}
            (Pending::Parting, Answer::Refused) => {
                self.parted(node, Some(Release::Refused(unreachable(Verb::Release))));
            }
            (undo @ Pending::Undo { .. }, Answer::Refused) => self.retry_undo(node, undo),
            (pending, answer) => panic!("{answer:?} answers nothing that waits as {pending:?}"),
        }
    }

    /// The time for an answer is over.
    pub(super) fn unanswered(&mut self, node: usize, request: u64) {
        let Some(pending) = self.nodes[node].pending.remove(&request) else { return };
        let silence = |verb| StoreError::new(StoreErrorKind::TimedOut(Duration::ZERO), verb, ADDRESS);
        match pending {
            Pending::Bid { sent, request: Request::Acquire(bid) } => {
                let answer = if self.setup.mutant == Some(Mutant::UnknownIsSuccess) {
                    let fence = Fence::after(None, bid.floor).expect("fences are left");
                    campaign::Answer::Granted(Granted {
                        claim: bid.granted(fence),
                        remaining: bid.ttl,
                        predecessor: Predecessor::None,
                        inherited: None,
                    })
                } else {
                    campaign::Answer::Unknown(silence(Verb::Acquire))
                };
                self.campaign(node, Event::Answered { sent, answer });
            }
            Pending::Look => self.campaign(node, Event::LookFailed(silence(Verb::Inspect))),
            undo @ Pending::Undo { .. } => self.retry_undo(node, undo),
            Pending::Parting => self.parted(node, None),
            Pending::Bid { .. } | Pending::Renewal { .. } | Pending::Release | Pending::LookForHeir => {}
        }
    }

    /// Until the claim, if there is one, has expired by itself.
    fn retry_undo(&mut self, node: usize, undo: Pending) {
        if matches!(undo, Pending::Undo { until, .. } if self.now < until) {
            self.undo(node, undo);
        }
    }

    fn won(&mut self, node: usize, sent: Moment, granted: Granted) {
        self.withdraw(node);
        self.begin_term(node, sent, granted);
    }
}
