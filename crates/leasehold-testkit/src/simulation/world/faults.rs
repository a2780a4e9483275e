//! Pauses, crashes, partitions, and their end.

use super::{Happening, World};
use crate::{
    history::What,
    simulation::{
        node::{Note, Role},
        setup::Weather,
    },
};
use leasehold_core::Moment;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Start {
        node: usize,
    },
    Pause {
        node: usize,
        lasts: u64,
    },
    Resume {
        node: usize,
        epoch: u64,
    },
    Crash {
        node: usize,
        lasts: u64,
    },
    Cut {
        node: usize,
        lasts: u64,
    },
    StoreDown {
        lasts: u64,
        refuses: bool,
    },
    StepDown,
    HandOff,
    /// All faults end.
    Heal,
}

impl World {
    /// Draws the faults of the whole run in advance.
    pub(super) fn plan_faults(&mut self) {
        let ttl = self.setup.timing.ttl();
        for node in 0..self.nodes.len() {
            let at = self.dice.between(Duration::ZERO, ttl / 4).as_nanos() as u64;
            self.queue.add(at, Happening::Fault(Fault::Start { node }));
        }
        let chaos = self.setup.chaos.as_nanos() as u64;
        let mut at = self.gap(self.setup.fault_every);
        while at < chaos {
            let node = self.dice.below(self.nodes.len() as u64) as usize;
            let lasts = self.dice.between(ttl / 20, ttl * 3).as_nanos() as u64;
            let fault = match self.dice.below(8) {
                0..3 => Fault::Pause { node, lasts },
                3..5 => Fault::Crash { node, lasts },
                5..7 => Fault::Cut { node, lasts },
                _ => Fault::StoreDown { lasts: lasts / 2, refuses: self.dice.per_mille(500) },
            };
            self.queue.add(at, Happening::Fault(fault));
            at += self.gap(self.setup.fault_every);
        }
        self.queue.add(chaos, Happening::Fault(Fault::Heal));
        // Step downs go on in the calm: each leaves a vacancy that is to be filled.
        let end = chaos + self.setup.calm.as_nanos() as u64;
        let mut at = self.gap(self.setup.step_down_every);
        while at < end {
            let fault = if self.dice.per_mille(600) { Fault::HandOff } else { Fault::StepDown };
            self.queue.add(at, Happening::Fault(fault));
            at += self.gap(self.setup.step_down_every);
        }
    }

    fn gap(&mut self, average: Duration) -> u64 {
        self.dice.between(average / 2, average * 3 / 2).as_nanos() as u64
    }

    pub(super) fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Start { node } => self.start(node),
            Fault::Pause { node, lasts } => {
                let target = &mut self.nodes[node];
                if target.is_up() && !target.paused {
                    target.paused = true;
                    let epoch = target.epoch;
                    self.log(node, 0, What::Paused);
                    self.queue.add(self.now + lasts, Happening::Fault(Fault::Resume { node, epoch }));
                }
            }
            Fault::Resume { node, epoch } => self.resume(node, epoch),
            Fault::Crash { node, lasts } => {
                if self.nodes[node].is_up() {
                    self.crash(node);
                    self.queue.add(self.now + lasts, Happening::Fault(Fault::Start { node }));
                }
            }
            Fault::Cut { node, lasts } => self.nodes[node].cut_until = self.now + lasts,
            Fault::StoreDown { lasts, refuses } => {
                self.store_down_until = self.now + lasts;
                self.store_refuses = refuses;
            }
            Fault::StepDown => self.tell_leaders(&Note::StepDown),
            Fault::HandOff => self.tell_leaders(&Note::HandOff),
            Fault::Heal => self.heal(),
        }
    }

    fn tell_leaders(&mut self, note: &Note) {
        for node in 0..self.nodes.len() {
            if matches!(self.nodes[node].role, Role::Leading(_)) {
                self.note_at(node, self.now, note.clone());
            }
        }
    }

    fn start(&mut self, node: usize) {
        if !self.nodes[node].is_up() {
            self.begin_succession(node);
            self.begin_campaign(node);
        }
    }

    /// A process that runs again finds everything at once that came meanwhile, in no order that it can rely on.
    fn resume(&mut self, node: usize, epoch: u64) {
        if self.nodes[node].epoch != epoch || !self.nodes[node].paused {
            return;
        }
        self.nodes[node].paused = false;
        self.log(node, 0, What::Resumed);
        let mut deferred = std::mem::take(&mut self.nodes[node].deferred);
        while !deferred.is_empty() {
            let next = self.dice.below(deferred.len() as u64) as usize;
            self.note_at(node, self.now, deferred.swap_remove(next));
        }
    }

    fn crash(&mut self, node: usize) {
        let now = Moment::from_nanos(self.now);
        if let Role::Leading(term) = std::mem::replace(&mut self.nodes[node].role, Role::Down) {
            let fence = term.claim.fence.get();
            self.log(node, fence, What::RenewerEnded);
            if let Some(unit) = term.unit {
                self.log(node, fence, What::Worked { from: unit.from });
            }
            self.log(node, fence, What::WorkerEnded);
        }
        if self.nodes[node].paused {
            self.log(node, 0, What::Resumed);
        }
        self.log(node, 0, What::Unwanted);
        let gone = &mut self.nodes[node];
        gone.epoch += 1;
        gone.paused = false;
        gone.deferred.clear();
        gone.pending.clear();
        gone.floor = None;
        let replica = gone.replica.clone();
        self.withdraw(node);
        let changes = self.history.len();
        self.store.crash(now, &replica, &mut self.history);
        if self.history.len() > changes {
            self.show();
        }
    }

    fn heal(&mut self) {
        self.weather = Weather { usual: self.setup.weather.usual, ..Weather::CALM };
        self.store_down_until = 0;
        for node in 0..self.nodes.len() {
            self.nodes[node].cut_until = 0;
            let epoch = self.nodes[node].epoch;
            self.resume(node, epoch);
            self.start(node);
        }
        self.log(0, 0, What::Healed);
    }
}
