//! Round trips, the lag of this program, and steps of the wall clock.

use crate::session::Session;
use leasehold::{AttemptId, BootClock, Candidacy, Clock, LeaseName, StoreError};
use std::time::Duration;
use tokio::time::sleep;

/// What was measured.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) samples: usize,
    pub(super) read: Spread,
    pub(super) write: Spread,
    pub(super) lag: Spread,
    /// How far the wall clock moved against the clock that leases use. A slew of a few ms is none.
    pub(super) wall_clock_step_ms: i64,
}

/// How a measure is spread.
#[derive(Debug)]
pub(super) struct Spread {
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) max: Duration,
}

/// Between two samples: the store shall hardly notice.
const PAUSE: Duration = Duration::from_millis(20);
/// A wall clock that is off by less is being slewed, not stepped.
const SLEW_MS: i64 = 20;

/// Reads and writes for as long as asked. The write is a candidacy: it expires by itself, and concerns no lease.
pub(super) async fn measure(session: &Session, length: Duration) -> Result<Measured, StoreError> {
    let clock = BootClock;
    // A name that nobody else uses, and a valid one.
    let name = LeaseName::new(format!("leasehold doctor {}", AttemptId::random().to_hex()));
    let Ok(name) = name else { unreachable!("hex digits are no control characters") };
    let candidacy =
        Candidacy { name, replica: session.replica.clone(), id: AttemptId::random(), priority: 0 };
    let (mut reads, mut writes, mut lags) = (Vec::new(), Vec::new(), Vec::new());
    let (begun, wall_begun) = (clock.now(), jiff::Timestamp::now());
    while reads.is_empty() || clock.now().since(begun) < length {
        let sent = clock.now();
        session.store.inspect(&candidacy.name).await?;
        reads.push(clock.now().since(sent));

        let sent = clock.now();
        session.store.announce(&candidacy, Duration::from_secs(5)).await?;
        writes.push(clock.now().since(sent));

        let slept = clock.now();
        sleep(PAUSE).await;
        // Timers are a millisecond coarse; that is no lag.
        lags.push(clock.now().since(slept).saturating_sub(PAUSE));
    }
    let passed = clock.now().since(begun);
    session.store.withdraw(&candidacy).await?;
    let wall = jiff::Timestamp::now().duration_since(wall_begun).as_millis();
    let step = i64::try_from(wall - passed.as_millis() as i128).unwrap_or(i64::MAX);
    Ok(Measured {
        samples: reads.len(),
        read: Spread::of(reads),
        write: Spread::of(writes),
        lag: Spread::of(lags),
        wall_clock_step_ms: if step.abs() < SLEW_MS { 0 } else { step },
    })
}

impl Spread {
    /// Of at least one measure.
    fn of(mut measures: Vec<Duration>) -> Self {
        measures.sort_unstable();
        let at = |percent: usize| {
            let last = measures.len().saturating_sub(1);
            measures.get((measures.len() * percent / 100).min(last)).copied().unwrap_or_default()
        };
        Self { p50: at(50), p99: at(99), max: at(100) }
    }
}
