//! Many candidates of one lease, in virtual time: a vacancy is filled soon (I10), and by few bids.

use super::world::{MS, granted, held, holding, record, replica};
use leasehold_core::{
    Fence, LeaseRecord, LeaseState, Moment, Timing,
    campaign::{Action, Answer, Campaign, Event, Patience, Wish},
};
use std::{collections::BTreeMap, time::Duration};

const CANDIDATES: usize = 200;
const STRIDE: Duration = Duration::from_millis(100);
const TTL: Duration = Duration::from_secs(10);

/// What reaches the store or a candidate.
#[derive(Clone)]
enum Delivery {
    ToStore(Request),
    To(usize, Event),
    Alarm(usize, Moment),
}

#[derive(Clone)]
enum Request {
    Bid(usize, Moment),
    Look(usize),
}

struct World {
    now: Moment,
    // By time, then by order of sending.
    post: BTreeMap<(Moment, usize), Delivery>,
    sent: usize,
    seed: u64,
    campaigns: Vec<Campaign>,
    alarms: Vec<Option<Moment>>,
    // A watch tells in order; what it tells and what a look answers may overtake each other.
    watched: Vec<Moment>,
    // Fence and expiry of the present holder.
    holder: (Fence, Moment),
    bids: usize,
    looks: usize,
    winner: Option<(usize, Moment)>,
}

impl World {
    /// `CANDIDATES` that wait for a holder whose lease ends after one ttl. Candidate n has n before it.
    fn waiting(seed: u64) -> Self {
        let now = Moment::from_nanos(1 << 40);
        let mut world = Self {
            now,
            post: BTreeMap::new(),
            sent: 0,
            seed,
            campaigns: Vec::new(),
            alarms: vec![None; CANDIDATES],
            watched: vec![now; CANDIDATES],
            holder: (Fence::FIRST, now.after(TTL)),
            bids: 0,
            looks: 0,
            winner: None,
        };
        let timing = Timing::new(TTL).expect("a valid ttl");
        for i in 0..CANDIDATES {
            let me = replica(&format!("r{i}"));
            let seed = world.random();
            let patience = Patience::Forever;
            let (campaign, todo) =
                Campaign::begin(Wish { me, timing, patience, stride: STRIDE, floor: None, seed });
            world.campaigns.push(campaign);
            world.perform(i, todo);
            world.deliver(MS * 500, Delivery::To(i, Event::Ranked(i)));
        }
        world.run_until(now.after(MS * 1000));
        assert_eq!(world.bids, CANDIDATES, "each asks once when it comes");
        world.bids = 0;
        world
    }

    /// Ends the holder's claim early, and tells everyone but the `silent` first, which are dead.
    fn release(&mut self, silent: usize) {
        self.holder.1 = self.now;
        let vacant = record(LeaseState::Vacant, Some(self.holder.0));
        for i in silent..CANDIDATES {
            self.tell(i, vacant.clone());
        }
        for i in 0..silent {
            self.alarms[i] = None;
        }
    }

    fn random(&mut self) -> u64 {
        // Numerical Recipes' generator: these delays need no more.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }

    /// From one to twenty milliseconds on the way.
    fn delay(&mut self) -> Duration {
        MS + Duration::from_micros(self.random() % 19_000)
    }

    fn deliver(&mut self, after: Duration, what: Delivery) {
        self.sent += 1;
        self.post.insert((self.now.after(after), self.sent), what);
    }

    fn tell(&mut self, i: usize, record: LeaseRecord) {
        self.watched[i] = self.watched[i].max(self.now.after(self.delay()));
        self.deliver(self.watched[i].since(self.now), Delivery::To(i, Event::Sighted(record)));
    }

    fn run_until(&mut self, end: Moment) {
        while let Some(entry) = self.post.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), what) = entry.remove_entry();
            self.now = at;
            match what {
                Delivery::ToStore(request) => self.store(&request),
                Delivery::To(i, event) => self.step(i, event),
                Delivery::Alarm(i, at) if self.alarms[i] == Some(at) => self.step(i, Event::Wake),
                Delivery::Alarm(..) => {}
            }
        }
        self.now = end;
    }

    fn store(&mut self, request: &Request) {
        let (fence, expiry) = self.holder;
        let left = expiry.since(self.now);
        let back = self.delay();
        match *request {
            Request::Look(i) => {
                self.looks += 1;
                let state = if left.is_zero() { LeaseState::Vacant } else { holding("z", fence, left) };
                self.deliver(back, Delivery::To(i, Event::Sighted(record(state, Some(fence)))));
            }
            Request::Bid(i, sent) if left.is_zero() => {
                self.bids += 1;
                let fence = Fence::after(Some(fence), None).expect("far from the end");
                self.holder = (fence, self.now.after(TTL));
                self.winner = Some((i, self.now));
                self.answer(i, sent, granted(fence, TTL), back);
                let taken = record(holding(&format!("r{i}"), fence, TTL), Some(fence));
                for other in (0..CANDIDATES).filter(|other| *other != i) {
                    self.tell(other, taken.clone());
                }
            }
            Request::Bid(i, sent) => {
                self.bids += 1;
                self.answer(i, sent, held(fence, left, false), back);
            }
        }
    }

    fn answer(&mut self, i: usize, sent: Moment, answer: Answer, back: Duration) {
        self.deliver(back, Delivery::To(i, Event::Answered { sent, answer }));
    }

    fn step(&mut self, i: usize, event: Event) {
        let todo = self.campaigns[i].step(self.now, event);
        self.perform(i, todo);
    }

    fn perform(&mut self, i: usize, todo: Vec<Action>) {
        for action in todo {
            let there = self.delay();
            match action {
                Action::Bid { .. } => self.deliver(there, Delivery::ToStore(Request::Bid(i, self.now))),
                Action::Look => self.deliver(there, Delivery::ToStore(Request::Look(i))),
                Action::WakeAt(at) => {
                    self.alarms[i] = Some(at);
                    self.deliver(at.since(self.now), Delivery::Alarm(i, at));
                }
                Action::Enlist | Action::Won { .. } => {}
                Action::Undo | Action::GiveUp(_) => panic!("nobody gives up here"),
            }
        }
    }
}

#[test]
fn a_release_among_two_hundred_is_followed_by_one_bid() {
    for seed in 0..20 {
        let mut world = World::waiting(seed);
        let released = world.now;
        world.release(0);
        world.run_until(released.after(MS * 5000));
        let (winner, at) = world.winner.expect("somebody wants it");
        assert_eq!((winner, world.bids, world.looks), (0, 1, 0), "seed {seed}");
        assert!(at.since(released) <= MS * 40, "seed {seed}: {:?}", at.since(released));
    }
}

#[test]
fn an_expiry_among_two_hundred_costs_one_look_and_one_bid() {
    for seed in 0..20 {
        let mut world = World::waiting(seed);
        let expiry = world.holder.1;
        world.run_until(expiry.after(MS * 5000));
        let (winner, at) = world.winner.expect("somebody wants it");
        assert_eq!((winner, world.bids, world.looks), (0, 1, 1), "seed {seed}");
        assert!(at.since(expiry) <= MS * 80, "seed {seed}: {:?}", at.since(expiry));
    }
}

#[test]
fn the_next_in_line_steps_in_for_those_that_died() {
    for (dead, most_bids) in [(1, 1), (3, 1), (10, 2), (100, 12)] {
        for seed in 0..10 {
            let mut world = World::waiting(seed);
            let released = world.now;
            world.release(dead);
            world.run_until(released.after(MS * 8000));
            let (winner, at) = world.winner.expect("somebody wants it");
            assert!(winner >= dead);
            assert!(world.bids <= most_bids, "{dead} dead, seed {seed}: {} bids", world.bids);
            // One stride for each of the first sixteen, sixteen for all the others, and some jitter.
            let bound = STRIDE * u32::try_from(dead.min(32)).expect("small") + STRIDE;
            assert!(at.since(released) <= bound, "{dead} dead, seed {seed}: {:?}", at.since(released));
        }
    }
}
