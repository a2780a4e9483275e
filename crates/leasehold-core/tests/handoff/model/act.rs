//! What can happen next, and what then is.

use super::{
    bounds::{Bounds, Kind, Mutation},
    rules,
    store::Store,
    world::{Post, Replica, Worker, World, fence},
};
use leasehold_core::handoff::{
    Otherwise,
    incumbent::{Answer, Event},
    successor,
};
use stateright::{Model, Property};
use std::collections::BTreeSet;

/// Acts with a replica's number are that replica's.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    Tick,
    Deliver(Post),
    AskAgain(usize),
    Acquire(usize),
    See(usize),
    WarmUp(usize),
    Resume(usize),
    Join(usize),
    Restart(usize),
    Release(usize),
    StrayArrives,
    // Mishaps from here on.
    Double(Post),
    Crash(usize),
    Lose(usize),
    FailToWarmUp(usize),
    Withdraw(usize),
    EndByItself(usize),
    RefuseRelease(usize),
    LoseReleaseAnswer(usize),
    DelayRelease(usize),
    ClaimToBeJoined(usize),
}

impl Model for Bounds {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        let replicas = (0..self.replicas)
            .map(|r| if r == 0 { Replica::leader(0, 1, self) } else { Replica::candidate(r) })
            .collect();
        let mut world = World {
            now: 1,
            store: Store::held_by(0),
            replicas,
            post: BTreeSet::new(),
            stray: None,
            mishaps: 0,
            endings: Vec::new(),
            given: Vec::new(),
            broken: None,
        };
        self.ask(&mut world, 0, 1, self.otherwise);
        vec![world]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        if world.now < self.ticks {
            acts.push(Act::Tick);
        }
        let may = |kind| world.mishaps < self.mishaps && self.kinds.contains(&kind);
        for letter in &world.post {
            acts.push(Act::Deliver(letter.clone()));
            if may(Kind::Letter) {
                acts.push(Act::Double(letter.clone()));
            }
        }
        acts.extend(world.stray.map(|_| Act::StrayArrives));
        for (r, replica) in world.replicas.iter().enumerate() {
            match replica {
                Replica::Gone => {}
                Replica::Down => acts.push(Act::Restart(r)),
                Replica::Candidate { warming, .. } => {
                    acts.push(Act::See(r));
                    let heirs_only = self.mutation != Mutation::NoHeirCheck;
                    if world.store.counter < self.terms && world.store.grants(r, heirs_only) {
                        acts.push(Act::Acquire(r));
                    }
                    acts.extend(warming.map(|_| Act::WarmUp(r)));
                    if may(Kind::Crash) {
                        acts.push(Act::Crash(r));
                    }
                    if may(Kind::Successor) {
                        acts.push(Act::Withdraw(r));
                        acts.extend(warming.map(|_| Act::FailToWarmUp(r)));
                    }
                }
                Replica::Leader(leader) => {
                    acts.push(Act::See(r));
                    match leader.worker {
                        Worker::Works if may(Kind::Loss) => acts.push(Act::EndByItself(r)),
                        Worker::Works | Worker::Joined => {}
                        Worker::Resumes => acts.extend([Act::Resume(r), Act::Join(r)]),
                        Worker::Quiesces | Worker::Killed => acts.push(Act::Join(r)),
                    }
                    if self.mutation == Mutation::NoJoinGate && leader.worker == Worker::Quiesces {
                        acts.push(Act::ClaimToBeJoined(r));
                    }
                    acts.extend(leader.releasing.map(|_| Act::Release(r)));
                    if may(Kind::Crash) {
                        acts.push(Act::Crash(r));
                    }
                    if may(Kind::Ask) && leader.fence == 1 {
                        acts.push(Act::AskAgain(r));
                    }
                    if may(Kind::Loss) && leader.renews {
                        acts.push(Act::Lose(r));
                    }
                    if may(Kind::Release) && leader.releasing.is_some() {
                        let troubles =
                            [Act::RefuseRelease(r), Act::LoseReleaseAnswer(r), Act::DelayRelease(r)];
                        acts.extend(troubles);
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &World, act: Act) -> Option<World> {
        let mut world = last.clone();
        self.act(&mut world, act);
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::all()
    }
}

impl Bounds {
    fn act(&self, world: &mut World, act: Act) {
        match act {
            Act::Tick => {
                world.now += 1;
                world.store.tick(world.now, self.mutation == Mutation::NoteStays);
                for r in 0..self.replicas {
                    self.incumbent(world, r, Event::Wake);
                    self.successor(world, r, successor::Event::Wake);
                }
            }
            Act::Deliver(letter) => {
                world.post.remove(&letter);
                self.deliver(world, &letter);
            }
            Act::See(r) => self.see(world, r),
            Act::Acquire(r) => self.acquire(world, r),
            Act::WarmUp(r) => {
                if let Replica::Candidate { warming, .. } = &mut world.replicas[r]
                    && let Some(handoff) = warming.take()
                {
                    self.successor(world, r, successor::Event::WarmedUp(handoff));
                }
            }
            Act::Resume(r) => self.worker(world, r, Worker::Works, Event::Resumed),
            Act::Join(r) => self.worker(world, r, Worker::Joined, Event::Joined),
            Act::Restart(r) => world.replicas[r] = Replica::candidate(r),
            Act::Release(r) => {
                let done = self.release(world, r);
                let holder = world.store.holder.map(|(by, number)| (super::world::id(by), fence(number)));
                let answer = if done { Answer::Released } else { Answer::NotHolder(holder) };
                self.incumbent(world, r, Event::Parted(answer));
            }
            Act::StrayArrives => {
                if let Some((r, fence, heir)) = world.stray.take() {
                    self.release_of(world, r, fence, heir);
                }
            }
            mishap => {
                world.mishaps += 1;
                self.mishap(world, mishap);
            }
        }
    }

    fn mishap(&self, world: &mut World, mishap: Act) {
        match mishap {
            Act::Double(letter) => self.deliver(world, &letter),
            Act::AskAgain(r) => self.ask(world, r, 2, Otherwise::Leave),
            Act::Crash(r) => {
                if let Some(fence) = world.leads(r).map(|leader| leader.fence) {
                    world.store.unrenewed(r, fence, world.now + self.ttl);
                }
                world.replicas[r] = Replica::Down;
            }
            Act::Lose(r) => {
                if let Replica::Leader(leader) = &mut world.replicas[r] {
                    // Trust ends before the store lets others in, and the worker with it, unless it blocks (I4).
                    world.store.unrenewed(r, leader.fence, world.now + self.ttl);
                    leader.renews = false;
                }
                self.worker(world, r, Worker::Killed, Event::Lost);
            }
            Act::FailToWarmUp(r) => {
                if let Replica::Candidate { warming, .. } = &mut world.replicas[r]
                    && let Some(handoff) = warming.take()
                {
                    self.successor(world, r, successor::Event::Unfit { handoff, why: "cold".into() });
                }
            }
            Act::Withdraw(r) => self.successor(world, r, successor::Event::Unwilling { why: "no".into() }),
            Act::EndByItself(r) => self.worker(world, r, Worker::Joined, Event::Joined),
            Act::ClaimToBeJoined(r) => self.incumbent(world, r, Event::Joined),
            Act::RefuseRelease(r) => self.trouble(world, r, Answer::Refused),
            Act::LoseReleaseAnswer(r) => {
                self.release(world, r);
                self.trouble(world, r, Answer::Unknown);
            }
            Act::DelayRelease(r) => {
                if let Some(leader) = world.leads(r) {
                    world.stray = leader.releasing.map(|heir| (r, leader.fence, heir));
                }
                self.trouble(world, r, Answer::Unknown);
            }
            _ => unreachable!("not a mishap"),
        }
    }

    fn worker(&self, world: &mut World, r: usize, becomes: Worker, event: Event) {
        if let Replica::Leader(leader) = &mut world.replicas[r] {
            leader.worker = becomes;
            self.incumbent(world, r, event);
        }
    }

    fn trouble(&self, world: &mut World, r: usize, answer: Answer) {
        if let Replica::Leader(leader) = &mut world.replicas[r] {
            leader.releasing = None;
        }
        let credulous = self.mutation == Mutation::UnknownIsReleased && answer == Answer::Unknown;
        let answer = if credulous { Answer::Released } else { answer };
        self.incumbent(world, r, Event::Parted(answer));
    }

    fn release(&self, world: &mut World, r: usize) -> bool {
        let Replica::Leader(leader) = &mut world.replicas[r] else { return false };
        let fence = leader.fence;
        leader.releasing.take().is_some_and(|heir| self.release_of(world, r, fence, heir))
    }

    fn release_of(&self, world: &mut World, r: usize, fence: u64, heir: Option<usize>) -> bool {
        let window = u64::try_from(self.plan.window.as_millis()).expect("a short window");
        world.store.release(r, fence, heir.map(|heir| (heir, world.now + window)))
    }

    fn acquire(&self, world: &mut World, r: usize) {
        if world.store.reserved.is_some_and(|(heir, _)| heir != r) {
            world.broken = Some("heir");
        }
        let (number, note) = world.store.acquire(r, self.mutation == Mutation::NoteStays);
        world.given.extend(note.map(|note| (note, number)));
        self.successor(world, r, successor::Event::Granted(fence(number)));
        world.replicas[r] = Replica::leader(r, number, self);
    }
}
