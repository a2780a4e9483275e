//! The world: time, network, faults, and everyone in it.

mod campaigning;
mod faults;
mod handing;
mod leading;
mod network;

use super::{
    Setup,
    clock::SkewedClock,
    dice::Dice,
    node::{Node, Note, Role},
    queue::Queue,
    resource::Resource,
    setup::Weather,
    store::{Request, Store},
};
use crate::history::{Event, What};
use faults::Fault;
use leasehold_core::{
    Claim, LeaseName, Moment, ReplicaId,
    handoff::{Successor, incumbent, successor},
};
use std::collections::BTreeMap;

/// Everything, at one time.
pub(super) struct World {
    pub(super) setup: Setup,
    weather: Weather,
    dice: Dice,
    now: u64,
    queue: Queue<Happening>,
    name: LeaseName,
    nodes: Vec<Node>,
    /// Candidates in the order of their coming.
    roster: Vec<usize>,
    store: Store,
    store_down_until: u64,
    /// Whether a store that is down says so, as a closed port does, or is silent.
    store_refuses: bool,
    resource: Resource,
    requests: u64,
    units: u64,
    pub(super) history: Vec<Event>,
}

/// What is due at some time.
#[derive(Debug)]
enum Happening {
    /// Something comes to a replica's process.
    Note {
        node: usize,
        epoch: u64,
        note: Note,
    },
    /// A request reaches the store.
    Request {
        node: usize,
        epoch: u64,
        number: u64,
        request: Request,
    },
    /// A write reaches the resource.
    Write(Claim),
    Fault(Fault),
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let mut dice = Dice::new(setup.seed);
        let name = LeaseName::new("feed").expect("a valid name");
        let replicas = (0..setup.nodes).map(|n| ReplicaId::new(format!("r{n}")).expect("a valid id"));
        let nodes = replicas.map(|replica| Node {
            successor: Successor::new(replica.clone(), name.clone()),
            replica,
            handoff_timer: 0,
            succession_timer: 0,
            clock: SkewedClock {
                origin: 1_000_000_000 * (1 + dice.below(1000)),
                rate: 1_000_000 - setup.drift + dice.below(2 * setup.drift + 1),
            },
            epoch: 0,
            role: Role::Down,
            paused: false,
            deferred: Vec::new(),
            cut_until: 0,
            timer: 0,
            floor: None,
            pending: BTreeMap::new(),
        });
        let nodes = nodes.collect();
        Self {
            weather: setup.weather,
            now: 0,
            queue: Queue::new(),
            nodes,
            roster: Vec::new(),
            store: Store::new(name.clone(), setup.mutant),
            store_down_until: 0,
            store_refuses: false,
            resource: Resource::new(setup.mutant),
            requests: 0,
            units: 0,
            history: Vec::new(),
            name,
            dice,
            setup,
        }
    }

    /// Lives through the chaos and the calm after it.
    pub(super) fn run(&mut self) {
        self.plan_faults();
        let end = (self.setup.chaos + self.setup.calm).as_nanos() as u64;
        while let Some((at, happening)) = self.queue.next(end) {
            self.now = at;
            match happening {
                Happening::Note { node, epoch, note } => self.note(node, epoch, note),
                Happening::Request { node, epoch, number, request } => {
                    self.serve(node, epoch, number, &request);
                }
                Happening::Write(claim) => {
                    let event = self.resource.write(at, &claim);
                    self.history.push(event);
                }
                Happening::Fault(fault) => self.strike(fault),
            }
        }
        self.now = end;
    }

    fn note(&mut self, node: usize, epoch: u64, note: Note) {
        let receiver = &mut self.nodes[node];
        if receiver.epoch != epoch || !receiver.is_up() {
            return;
        }
        if receiver.paused {
            receiver.deferred.push(note);
            return;
        }
        match note {
            Note::Wake { timer } if timer != receiver.timer => {}
            Note::Wake { .. } => match receiver.role {
                Role::Campaigning(_) => self.campaign(node, leasehold_core::campaign::Event::Wake),
                Role::Leading(_) => self.hold(node, leasehold_core::tenure::Event::Wake),
                Role::Down | Role::Resting | Role::Parting(_) => {}
            },
            Note::HandoffWake { timer } if timer != receiver.handoff_timer => {}
            Note::HandoffWake { .. } => self.hand(node, incumbent::Event::Wake),
            Note::SuccessionWake { timer } if timer != receiver.succession_timer => {}
            Note::SuccessionWake { .. } => self.succeed(node, successor::Event::Wake),
            Note::Answered { request, answer } => self.answered(node, request, answer),
            Note::Unanswered { request } => self.unanswered(node, request),
            Note::Sighted(record) => self.sighted(node, record),
            Note::Ranked(before) => self.campaign(node, leasehold_core::campaign::Event::Ranked(before)),
            Note::BeginWork { fence } => self.begin_work(node, fence),
            Note::EndWork { unit } => self.end_work(node, unit),
            Note::StepDown => self.step_down(node),
            Note::HandOff => self.hand_off(node),
            Note::Rested if matches!(receiver.role, Role::Resting) => self.begin_campaign(node),
            Note::Rested => {}
            Note::Letter { from, letter } => self.letter(node, from, letter),
            Note::Roster(roster) => self.hand(node, incumbent::Event::Roster(roster)),
            Note::Joined => self.hand(node, incumbent::Event::Joined),
            Note::Resumed => self.hand(node, incumbent::Event::Resumed),
            Note::Warmed { handoff, warm: true } => self.succeed(node, successor::Event::WarmedUp(handoff)),
            Note::Warmed { handoff, warm: false } => {
                self.succeed(node, successor::Event::Unfit { handoff, why: "cold".into() });
            }
        }
    }

    /// What a replica's own clock shows.
    fn local(&self, node: usize) -> Moment {
        self.nodes[node].clock.shows(self.now)
    }

    fn note_at(&mut self, node: usize, at: u64, note: Note) {
        let epoch = self.nodes[node].epoch;
        self.queue.add(at.max(self.now), Happening::Note { node, epoch, note });
    }

    /// The one timer of a machine: the latest one counts.
    fn wake_at(&mut self, node: usize, moment: Moment) {
        self.nodes[node].timer += 1;
        let timer = self.nodes[node].timer;
        let at = self.nodes[node].clock.reaches(moment);
        self.note_at(node, at, Note::Wake { timer });
    }

    fn log(&mut self, node: usize, fence: u64, what: What) {
        let (lease, replica) = (self.name.to_string(), self.nodes[node].replica.to_string());
        self.history.push(Event { at: self.now, lease, replica, fence, what });
    }
}
