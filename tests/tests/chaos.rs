//! Three candidates, twenty rounds of kills, pauses and terminations by dice, and every invariant over what was logged.

use leasehold_testkit::history::{Traffic, What as Happened, i10_progress, safety};
use leasehold_tests::{History, Ledger, Order, Replica, Site, What, on_every_store};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{thread, time::Duration};

on_every_store!(no_invariant_breaks_while_replicas_are_killed_and_paused_at_random);

const TTL: Duration = Duration::from_millis(300);
const ROUNDS: usize = 20;
/// A vacancy with willing candidates is filled within a ttl and a few requests; the rest is for a machine that is busy
/// with other tests (I10).
const PROGRESS: Duration = Duration::from_secs(6);

fn no_invariant_breaks_while_replicas_are_killed_and_paused_at_random(site: &Site) {
    let seed = match std::env::var("LEASEHOLD_SEED") {
        Ok(seed) => seed.parse().expect("LEASEHOLD_SEED is a number"),
        Err(_) => rand::random(),
    };
    // Shown if the test fails.
    eprintln!("to play these rounds again: LEASEHOLD_SEED={seed}");
    let mut arena = Arena::open(site, seed);
    arena.pause_with_a_write_in_hand();
    for _ in 0..ROUNDS {
        arena.round();
        arena.goes_on();
    }
    let history = arena.heal_and_tell();

    let violations: Vec<_> = safety(&history).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    // Without enough of everything, no violation would mean nothing.
    let needed =
        Traffic { grants: 5, takeovers: 4, expiries: 1, accepted: 300, refused: 1, ..Traffic::default() };
    let traffic = needed.check(&history).unwrap_or_else(|vacuous| panic!("{vacuous}"));
    eprintln!("{traffic:?}");
    let until = history.last().map_or(0, |event| event.at);
    let late = i10_progress::check(&history, PROGRESS, until);
    assert!(late.is_empty(), "{late:#?}");
}

/// The candidates, and what is done to them.
struct Arena<'a> {
    site: &'a Site,
    ledger: Ledger,
    dice: StdRng,
    history: History,
    running: Vec<Replica>,
    // What they said is part of the history.
    gone: Vec<Replica>,
    born: usize,
}

impl<'a> Arena<'a> {
    fn open(site: &'a Site, seed: u64) -> Self {
        let (ledger, dice) = (Ledger::open(), StdRng::seed_from_u64(seed));
        let history = History::new(TTL);
        let mut arena = Self { site, ledger, dice, history, running: Vec::new(), gone: Vec::new(), born: 0 };
        for _ in 0..3 {
            arena.bear();
        }
        arena
    }

    /// Starts one more candidate. Every other one has a crash witness.
    fn bear(&mut self) {
        self.born += 1;
        let mut casting = self.site.replica(&format!("r{}", self.born)).ttl(TTL).ledger(&self.ledger);
        if self.born.is_multiple_of(2) {
            casting = casting.crash_witness();
        }
        let mut replica = casting.writing_every(Duration::from_millis(5)).elect();
        replica.campaigning();
        self.running.push(replica);
    }

    /// Waits until somebody leads and has written, behind everything so far.
    fn goes_on(&self) {
        let so_far = self.ledger.journal().len();
        let taken = |entry: &leasehold_tests::Entry| entry.verdict == leasehold_tests::Verdict::Taken;
        self.ledger.wait_behind(so_far + 25, "the work goes on", taken);
    }

    fn leader(&self) -> Option<usize> {
        self.running.iter().position(Replica::leads)
    }

    /// Not left to the dice: the fence is put to the test once in any case.
    fn pause_with_a_write_in_hand(&mut self) {
        self.goes_on();
        let at = self.leader().expect("somebody leads, and nothing was done to it");
        self.running[at].order(Order::InHand("in hand".into()));
        let hand =
            self.running[at].wait("the write in hand", |said| matches!(said.what, What::InHand { .. }));
        let fence = hand.fence.expect("a worker's fence");
        self.pause(at);
        self.ledger.wait("another term's line", |entry| entry.fence > fence);
        self.running[at].order(Order::Go);
        self.resume(at);
        self.running[at].wait("the refusal", |said| matches!(said.what, What::Stale { .. }));
    }

    fn round(&mut self) {
        let anyone = self.dice.random_range(0..self.running.len());
        // The leader is worth most trouble.
        let at = if self.dice.random_bool(0.7) { self.leader().unwrap_or(anyone) } else { anyone };
        match self.dice.random_range(0..5) {
            0 | 1 => self.kill(at),
            2 => self.terminate(at),
            _ => {
                let length = TTL.mul_f64(self.dice.random_range(0.2..2.5));
                self.pause(at);
                thread::sleep(length);
                self.resume(at);
            }
        }
    }

    fn kill(&mut self, at: usize) {
        let mut replica = self.running.remove(at);
        let witnessed = History::now();
        replica.kill();
        self.history.mark(witnessed, replica.id(), 0, Happened::Unwanted);
        // With a witness its claim may end from here on, and need not wait for its expiry.
        let last = replica.said().iter().rev().find_map(|said| said.fence);
        self.history.mark(witnessed, replica.id(), last.unwrap_or(0), Happened::Vacated);
        self.gone.push(replica);
        self.bear();
    }

    fn terminate(&mut self, at: usize) {
        let mut replica = self.running.remove(at);
        self.history.mark(History::now(), replica.id(), 0, Happened::Unwanted);
        replica.terminate();
        assert!(replica.exit().success(), "{}", replica.complaints());
        self.gone.push(replica);
        self.bear();
    }

    fn pause(&mut self, at: usize) {
        let now = History::now();
        self.running[at].pause();
        let id = self.running[at].id();
        self.history.mark(now, id, 0, Happened::Paused);
        self.history.mark(now, id, 0, Happened::Unwanted);
    }

    fn resume(&mut self, at: usize) {
        self.running[at].resume();
        let now = History::now();
        let id = self.running[at].id();
        self.history.mark(now, id, 0, Happened::Resumed);
        self.history.mark(now, id, 0, Happened::Wanted);
    }

    /// No more trouble, but one orderly change; then everybody is asked to end.
    fn heal_and_tell(mut self) -> Vec<leasehold_testkit::history::Event> {
        self.history.mark(History::now(), "test", 0, Happened::Healed);
        self.goes_on();
        if let Some(at) = self.leader() {
            self.terminate(at);
        }
        self.goes_on();
        let end = History::now();
        for mut replica in std::mem::take(&mut self.running) {
            replica.terminate();
            assert!(replica.exit().success(), "{}", replica.complaints());
            self.gone.push(replica);
        }
        for replica in &self.gone {
            assert!(!replica.complaints().contains("panicked"), "{}", replica.complaints());
            self.history.add_replica(replica);
        }
        self.history.add_ledger(&self.ledger);
        let mut history = self.history.told();
        history.retain(|event| event.at <= end);
        history
    }
}
