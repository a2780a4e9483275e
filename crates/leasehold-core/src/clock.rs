//! Time as leases need it: monotonic, counting suspend, and replaceable in tests.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// An instant on one [`Clock`]: nanoseconds since that clock's own origin. Moments of two clocks, or of two
/// boots of a machine, must not be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The clock's origin.
    pub const ORIGIN: Self = Self(0);

    /// The moment `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin. 64 bits last 584 years.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This moment plus `d`, held at the largest moment: never a wrap, never a panic.
    #[must_use]
    pub fn after(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// This moment minus `d`, held at the origin.
    #[must_use]
    pub fn before(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{:?}", Duration::from_nanos(self.0))
    }
}

/// A monotonic clock.
///
/// An implementation must never run backwards, and should run during system suspend: the time a machine
/// slept counts against its leases.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The present moment.
    fn now(&self) -> Moment;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Moment {
        (**self).now()
    }
}

/// The operating system's clock: `CLOCK_BOOTTIME` on Linux, which runs during suspend; `CLOCK_MONOTONIC` elsewhere
/// on Unix (which on macOS runs during suspend too).
///
/// All processes of one boot of one host read the same value.
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

#[cfg(unix)]
impl Clock for BootClock {
    fn now(&self) -> Moment {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const ID: rustix::time::ClockId = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const ID: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
        let t = rustix::time::clock_gettime(ID);
        // Both fields are non-negative on a clock that counts from boot.
        Moment((t.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(t.tv_nsec as u64))
    }
}

/// Tokio's clock, so that tests under `tokio::time::pause` drive leases too. Counts from the clock's creation.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: tokio::time::Instant,
}

impl TokioClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        // One second of head start, so that moments before the origin need no care in tests.
        Self { origin: tokio::time::Instant::now() - Duration::from_secs(1) }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment::ORIGIN.after(self.origin.elapsed())
    }
}

/// A clock that moves only when told to; clones share one hand.
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at `start`.
    #[must_use]
    pub fn starting_at(start: Moment) -> Self {
        Self { nanos: Arc::new(AtomicU64::new(start.0)) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().after(by));
    }

    /// Moves the clock to `to`; a moment in the past is ignored, for clocks never run backwards.
    pub fn set(&self, to: Moment) {
        self.nanos.fetch_max(to.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment(self.nanos.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let late = Moment(u64::MAX - 5);
        assert_eq!(late.after(Duration::MAX), Moment(u64::MAX));
        assert_eq!(Moment(3).before(Duration::MAX), Moment::ORIGIN);
        assert_eq!(Moment(3).since(late), Duration::ZERO);
    }

    #[test]
    fn a_manual_clock_never_runs_backwards() {
        let clock = ManualClock::starting_at(Moment(10));
        clock.set(Moment(5));
        assert_eq!(clock.now(), Moment(10));
        clock.advance(Duration::from_nanos(7));
        let shared = clock.clone();
        clock.advance(Duration::from_nanos(1));
        assert_eq!(shared.now(), Moment(18));
    }
}
