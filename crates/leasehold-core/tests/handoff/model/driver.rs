//! Does what the machines say, as the actors of a replica would.

use super::{
    super::common,
    bounds::{Bounds, Mutation},
    world::{Post, Replica, Worker, World, fence, id, index},
};
use leasehold_core::{
    AttemptId, Claim, LeaseRecord, LeaseState,
    handoff::{Ending, HandoffId, Letter, Otherwise, Vacated, incumbent, successor, wire},
};
use std::time::Duration;

impl Bounds {
    /// Gives an event to the incumbent of a replica, and does what it wants done.
    pub(super) fn incumbent(&self, world: &mut World, replica: usize, event: incumbent::Event) {
        let now = world.moment();
        let Replica::Leader(leader) = &mut world.replicas[replica] else { return };
        for action in leader.incumbent.step(now, event) {
            self.perform(world, replica, action);
        }
        self.retire(world, replica);
    }

    /// Gives an event to the successor of a replica, and does what it wants done.
    pub(super) fn successor(&self, world: &mut World, replica: usize, event: successor::Event) {
        use successor::Action;
        let now = world.moment();
        let yours = matches!(&event, successor::Event::Letter { .. });
        let Replica::Candidate { successor, warming } = &mut world.replicas[replica] else { return };
        let mut believes = false;
        let mut letters = Vec::new();
        for action in successor.step(now, event) {
            match action {
                Action::WarmUp { handoff, .. } => *warming = Some(handoff),
                Action::StandDown { .. } => *warming = None,
                Action::Send { to, letter } => letters.push((to, letter)),
                // A bid is possible at any time here.
                Action::Bid => believes = yours && self.mutation == Mutation::YoursIsAGrant,
                Action::WakeAt(_) | Action::Stay { .. } => {}
            }
        }
        for (to, letter) in letters {
            post(world, replica, index(&to), &letter);
        }
        if believes {
            let fence = world.store.counter + 1;
            world.replicas[replica] = Replica::leader(replica, fence, self);
        }
    }

    fn perform(&self, world: &mut World, replica: usize, action: incumbent::Action) {
        use incumbent::Action;
        let now = world.now;
        let roster = (0..self.replicas).filter(|r| world.replicas[*r] != Replica::Gone).map(id).collect();
        let holder = world.store.holder.map(|(by, number)| (id(by), fence(number)));
        let Replica::Leader(leader) = &mut world.replicas[replica] else { return };
        match action {
            Action::ReadRoster => {
                self.incumbent(world, replica, incumbent::Event::Roster(Some(roster)));
            }
            Action::Look => self.incumbent(world, replica, incumbent::Event::Sighted(holder)),
            Action::Send { to, letter } => post(world, replica, index(&to), &letter),
            Action::Quiesce { .. } if matches!(leader.worker, Worker::Works | Worker::Resumes) => {
                leader.worker = Worker::Quiesces;
            }
            Action::Resume if leader.worker == Worker::Quiesces => leader.worker = Worker::Resumes,
            Action::KillWorker if leader.worker != Worker::Joined => leader.worker = Worker::Killed,
            Action::EndRenewals => {
                leader.renews = false;
                world.store.unrenewed(replica, leader.fence, now + self.ttl);
            }
            Action::Release { heir } => {
                if leader.worker != Worker::Joined {
                    world.broken = Some("I6");
                }
                leader.releasing = Some(heir.map(|(heir, _)| index(&heir)));
            }
            Action::End { ending, .. } => self.ended(world, replica, ending),
            _ => {}
        }
    }

    fn ended(&self, world: &mut World, replica: usize, ending: Ending) {
        let Replica::Leader(leader) = &mut world.replicas[replica] else { return };
        let said_to_be_released = matches!(
            &ending,
            Ending::Released(Vacated::ToAnyone | Vacated::NotTaken | Vacated::Withdrawn)
                | Ending::Done { .. }
        );
        if said_to_be_released && world.store.holder == Some((replica, leader.fence)) {
            world.broken = Some("I7");
        }
        if !matches!(ending, Ending::Aborted(_)) {
            leader.renews = false;
            leader.releasing = None;
            world.store.unrenewed(replica, leader.fence, world.now + self.ttl);
        }
        if !world.endings.contains(&ending) {
            world.endings.push(ending);
        }
    }

    /// A term that is over, and whose worker has been joined, makes room.
    fn retire(&self, world: &mut World, replica: usize) {
        let Replica::Leader(leader) = &world.replicas[replica] else { return };
        if leader.worker != Worker::Joined || !leader.incumbent.is_over() {
            return;
        }
        if leader.renews {
            // Its worker ended by itself, and no handoff was under way: released as after any term.
            world.store.release(replica, leader.fence, None);
        }
        world.replicas[replica] = match self.otherwise {
            Otherwise::LeadOn => Replica::candidate(replica),
            Otherwise::Leave => Replica::Gone,
        };
    }

    pub(super) fn ask(&self, world: &mut World, replica: usize, number: u128, otherwise: Otherwise) {
        let now = world.now;
        let Replica::Leader(leader) = &mut world.replicas[replica] else { return };
        if leader.incumbent.handoff().is_none() {
            leader.asked_at = now;
        }
        let within = if number == 1 { self.within } else { Duration::from_millis(1) };
        let ask = common::ask(self.to.clone(), within, otherwise);
        self.incumbent(world, replica, incumbent::Event::Asked { id: HandoffId::from_u128(number), ask });
    }

    pub(super) fn see(&self, world: &mut World, replica: usize) {
        let holder = world.store.holder.map(|(by, number)| (id(by), fence(number)));
        self.incumbent(world, replica, incumbent::Event::Sighted(holder.clone()));
        let state = match (holder, world.store.reserved) {
            (Some((by, fence)), _) => LeaseState::Held {
                claim: Claim {
                    name: common::lease(),
                    replica: by,
                    attempt: AttemptId::from_bytes([0; 16]),
                    fence,
                },
                remaining: Duration::ZERO,
                held_for: Duration::ZERO,
                crash_witness: false,
            },
            (None, Some((heir, _))) => LeaseState::Reserved { heir: id(heir), remaining: Duration::ZERO },
            (None, None) => LeaseState::Vacant,
        };
        let counter = Some(fence(world.store.counter));
        let record = LeaseRecord { counter, state, ..LeaseRecord::unknown(common::lease()) };
        self.successor(world, replica, successor::Event::Sighted(record));
    }

    pub(super) fn deliver(&self, world: &mut World, letter: &Post) {
        let (from, to) = (id(letter.from), letter.to);
        let mut envelope = wire::seal(&common::letter(0, 1, leasehold_core::handoff::Message::Abort), &from);
        (envelope.kind, envelope.body) = (letter.kind.as_str().into(), letter.body.as_slice().into());
        let letter = wire::open(&envelope).expect("our own letter");
        match &world.replicas[to] {
            Replica::Leader(_) => self.incumbent(world, to, incumbent::Event::Letter { from, letter }),
            Replica::Candidate { .. } => {
                self.successor(world, to, successor::Event::Letter { from, letter });
            }
            Replica::Down | Replica::Gone => {}
        }
    }
}

fn post(world: &mut World, from: usize, to: usize, letter: &Letter) {
    let envelope = wire::seal(letter, &id(from));
    world.post.insert(Post { from, to, kind: envelope.kind.to_string(), body: envelope.body.to_vec() });
}
