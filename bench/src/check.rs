//! A grant's check, beside one reading of the clock.

use crate::table::Table;
use leasehold::{AttemptId, BootClock, Claim, Clock, Fence, Keeper, Moment};
use std::{hint::black_box, sync::Arc, time::Duration};

const ROUNDS: usize = 9;
const CALLS: u32 = 2_000_000;

pub(crate) fn run(table: &mut Table) {
    let (Ok(name), Ok(replica)) = ("bench".try_into(), "bench".try_into()) else { return };
    let claim = Claim { name, replica, attempt: AttemptId::random(), fence: Fence::FIRST };
    let grant = Keeper::new(claim, Moment::from_nanos(u64::MAX), Arc::new(BootClock));
    let (mut checks, mut readings) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        checks.push(timed(|| drop(black_box(black_box(&grant).check()))));
        readings.push(timed(|| {
            black_box(black_box(&BootClock).now());
        }));
    }
    let (check, reading) = (nanos(&mut checks), nanos(&mut readings));
    table.row(
        "`Grant::check()`",
        format!("{check:.1} ns"),
        format!("one reading of the boot clock: {reading:.1} ns ({:.2}×)", check / reading),
        "below 50 ns",
        ROUNDS * CALLS as usize,
    );
}

fn timed(mut call: impl FnMut()) -> Duration {
    let start = BootClock.now();
    for _ in 0..CALLS {
        call();
    }
    BootClock.now().since(start)
}

fn nanos(rounds: &mut [Duration]) -> f64 {
    crate::table::median(rounds).as_secs_f64() * 1e9 / f64::from(CALLS)
}
