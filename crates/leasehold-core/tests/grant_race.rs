//! A [`Grant`](leasehold_core::Grant) read by many threads while its term ends.

use leasehold_core::{AttemptId, Claim, Fence, Keeper, LeaseName, LostCause, ManualClock, Moment, ReplicaId};
use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

const READERS: usize = 3;
const ROUNDS: usize = 200;

fn grant(clock: &ManualClock, until: Moment) -> Keeper {
    let claim = Claim {
        name: LeaseName::new("lease").expect("a valid name"),
        replica: ReplicaId::new("me").expect("a valid name"),
        attempt: AttemptId::random(),
        fence: Fence::FIRST,
    };
    Keeper::new(claim, until, Arc::new(clock.clone()))
}

/// Whoever knows that the term was ended is refused, and is told why, although somebody goes on extending it.
#[test]
fn no_check_succeeds_once_the_end_was_seen() {
    for _ in 0..ROUNDS {
        let clock = ManualClock::starting_at(Moment::from_nanos(1_000));
        let grant = grant(&clock, Moment::from_nanos(1_000_000));
        let (ended, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let start = Barrier::new(READERS + 2);
        let reader = || {
            start.wait();
            let mut refused = false;
            let mut checks_after_the_end = 0;
            while checks_after_the_end < 20 {
                let known = ended.load(Ordering::Acquire);
                let answer = grant.check();
                assert!(!known || answer.is_err(), "trusted after the end");
                assert!(!refused || answer.is_err(), "trusted again after a refusal");
                if let Err(lost) = answer {
                    refused = true;
                    assert_eq!(lost.cause, LostCause::NoPulse, "refused without the reason");
                    assert!(grant.remaining().is_zero());
                }
                checks_after_the_end += usize::from(known);
                thread::yield_now();
            }
        };
        let extender = || {
            start.wait();
            let mut until = Moment::from_nanos(1_000_000);
            while !stop.load(Ordering::Relaxed) {
                until = until.after(Duration::from_nanos(1));
                grant.extend(until);
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            scope.spawn(extender);
            let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(reader)).collect();
            start.wait();
            grant.end(LostCause::NoPulse);
            ended.store(true, Ordering::Release);
            let outcomes: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
            stop.store(true, Ordering::Relaxed);
            assert!(outcomes.iter().all(Result::is_ok));
        });
        assert!(grant.check().is_err());
    }
}

/// Nobody ends the term: the clock does, for every reader, at the deadline as it stood.
#[test]
fn no_check_succeeds_once_the_deadline_was_seen_to_pass() {
    for _ in 0..ROUNDS {
        let clock = ManualClock::starting_at(Moment::from_nanos(1_000));
        let deadline = Moment::from_nanos(1_000 + 16);
        let grant = grant(&clock, deadline);
        let start = Barrier::new(READERS + 1);
        thread::scope(|scope| {
            for _ in 0..READERS {
                let clock = clock.clone();
                let (start, grant) = (&start, &grant);
                scope.spawn(move || {
                    start.wait();
                    loop {
                        let before = leasehold_core::Clock::now(&clock);
                        let answer = grant.check();
                        assert!(before < deadline || answer.is_err(), "trusted at {before:?}");
                        match answer {
                            Ok(permit) => assert_eq!(permit.until(), deadline),
                            Err(lost) => break assert_eq!(lost.cause, LostCause::Expired),
                        }
                        thread::yield_now();
                    }
                });
            }
            start.wait();
            for _ in 0..16 {
                clock.advance(Duration::from_nanos(1));
                thread::yield_now();
            }
        });
    }
}

/// Two renewals answered at the same time on two threads: the later deadline stands, whoever is last.
#[test]
fn racing_extensions_leave_the_latest_deadline() {
    for _ in 0..ROUNDS {
        let clock = ManualClock::starting_at(Moment::from_nanos(1_000));
        let grant = grant(&clock, Moment::from_nanos(2_000));
        let start = Barrier::new(READERS);
        thread::scope(|scope| {
            for lane in 0..READERS as u64 {
                let (start, grant) = (&start, &grant);
                scope.spawn(move || {
                    start.wait();
                    let mut last = grant.trusted_until();
                    for n in 0..100 {
                        grant.extend(Moment::from_nanos(2_000 + n * READERS as u64 + lane));
                        let now = grant.trusted_until();
                        assert!(now >= last, "trust never moves back");
                        last = now;
                    }
                });
            }
        });
        assert_eq!(grant.trusted_until(), Moment::from_nanos(2_000 + 100 * READERS as u64 - 1));
    }
}
