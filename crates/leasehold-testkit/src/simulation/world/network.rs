//! Messages between replicas, store and resource: late, lost, twice.

use super::{Happening, World};
use crate::simulation::{
    node::{Note, Pending, Role},
    store::{Answer, Request},
};
use leasehold_core::{Claim, LeaseState, Moment};
use std::time::Duration;

impl World {
    /// When the copies of a message arrive: none, one, or two.
    pub(super) fn arrivals(&mut self, node: usize) -> Vec<u64> {
        let weather = self.weather;
        if self.nodes[node].cut_until > self.now || self.dice.per_mille(weather.loss) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.dice.per_mille(weather.duplicate));
        (0..copies)
            .map(|copy| {
                let straggles = copy > 0 || self.dice.per_mille(weather.straggle);
                let most = if straggles { weather.longest } else { weather.usual };
                self.now + self.dice.between(Duration::ZERO, most).as_nanos() as u64
            })
            .collect()
    }

    /// Sends a request. If it may take only so long by the replica's clock, it is told when the time is over.
    pub(super) fn send(&mut self, node: usize, request: Request, pending: Pending, within: Option<Duration>) {
        self.requests += 1;
        let number = self.requests;
        self.nodes[node].pending.insert(number, pending);
        let epoch = self.nodes[node].epoch;
        for at in self.arrivals(node) {
            let request = request.clone();
            self.queue.add(at, Happening::Request { node, epoch, number, request });
        }
        if let Some(within) = within {
            let at = self.nodes[node].clock.reaches(self.local(node).after(within));
            self.note_at(node, at, Note::Unanswered { request: number });
        }
    }

    /// A worker writes to the resource, and does not wait.
    pub(super) fn write(&mut self, node: usize, claim: &Claim) {
        for at in self.arrivals(node) {
            self.queue.add(at, Happening::Write(claim.clone()));
        }
    }

    /// A request has reached the store.
    pub(super) fn serve(&mut self, node: usize, epoch: u64, number: u64, request: &Request) {
        let changes = self.history.len();
        let down = self.store_down_until > self.now;
        let answer = match down {
            true if !self.store_refuses => return,
            true => Answer::Refused,
            false => self.store.serve(Moment::from_nanos(self.now), request, &mut self.history),
        };
        for at in self.arrivals(node) {
            let note = Note::Answered { request: number, answer: answer.clone() };
            self.queue.add(at, Happening::Note { node, epoch, note });
        }
        let mut changed = self.history.len() > changes;
        // A release in favour of an heir changes more than its claim.
        changed |= matches!(answer, Answer::Release(leasehold_core::Release::Released));
        if changed {
            self.show();
        }
    }

    /// Shows the present state to all who watch: those who wait, and those who hold it.
    pub(super) fn show(&mut self) {
        let record = self.store.record(Moment::from_nanos(self.now));
        // A renewal is no news to a watcher.
        debug_assert!(!matches!(&record.state, LeaseState::Held { claim, .. } if claim.name != self.name));
        let leading = (0..self.nodes.len())
            .filter(|node| matches!(self.nodes[*node].role, Role::Leading(_) | Role::Parting(_)));
        for node in self.roster.iter().copied().chain(leading).collect::<Vec<_>>() {
            for at in self.arrivals(node) {
                self.note_at(node, at, Note::Sighted(record.clone()));
            }
        }
    }

    /// Tells candidates how many are before them.
    pub(super) fn rank(&mut self) {
        for (before, node) in self.roster.clone().into_iter().enumerate() {
            for at in self.arrivals(node) {
                self.note_at(node, at, Note::Ranked(before));
            }
        }
    }

    pub(super) fn enlist(&mut self, node: usize) {
        if !self.roster.contains(&node) {
            self.roster.push(node);
            self.rank();
        }
    }

    pub(super) fn withdraw(&mut self, node: usize) {
        if self.roster.contains(&node) {
            self.roster.retain(|candidate| *candidate != node);
            self.rank();
        }
    }

    /// What an attempt may have got is asked about and released, until it is known or has expired.
    pub(super) fn undo(&mut self, node: usize, pending: Pending) {
        let within = self.setup.timing.ttl() / 4;
        self.send(node, Request::Look, pending, Some(within));
    }
}
