//! The durations of a lease and the triangle between them.

use crate::Moment;
use std::time::Duration;

/// The shortest time to live. Below it the ordinary scheduling delays of an operating system decide who leads.
pub const MIN_TTL: Duration = Duration::from_millis(50);
/// The longest time to live. A longer lease would block everyone for days after a crash.
pub const MAX_TTL: Duration = Duration::from_hours(24);
/// The smallest margin.
pub const MIN_MARGIN: Duration = Duration::from_millis(5);
/// The shortest renewal interval.
pub const MIN_RENEW_EVERY: Duration = Duration::from_millis(5);

/// The durations of one lease, checked against each other.
///
/// ```text
/// sent ├──── renew_every ────┤                                   trusted_until       expiry at the store
///      ├─────────────────────────────── ttl − margin ────────────────┤──── margin ────┤
///                                               last call ├── grace ─┤
/// ```
///
/// * **ttl**: how long the store keeps a claim without renewal. [`MIN_TTL`] to [`MAX_TTL`]; rounded up to whole
///   milliseconds, the granularity of the stores, and [`Timing::ttl`] tells the rounded value that is really used.
/// * **margin**: how long before the store's expiry the holder stops trusting its claim. It covers the difference in
///   clock *rate* between holder and store over one ttl. Default ttl/10, at least [`MIN_MARGIN`].
/// * **renew_every**: from one renewal to the next. Default ttl/3.
/// * **grace**: how long before the end of trust a worker whose renewals fail gets its last call. Default zero.
///
/// The triangle: `renew_every + grace + margin < ttl`. Otherwise a healthy holder would lose its lease before its
/// first renewal is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    ttl: Duration,
    margin: Duration,
    renew_every: Duration,
    grace: Duration,
}

/// Why durations were refused. Nothing was sent to any store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// The ttl was below the minimum (zero included).
    #[error("a ttl of {ttl:?} is too short: the least is {min:?}")]
    TtlTooShort {
        /// What was asked for.
        ttl: Duration,
        /// The bound, of the library or of the store.
        min: Duration,
    },
    /// The ttl was above the maximum.
    #[error(
        "a ttl of {ttl:?} is too long: the most is {max:?}, since a crashed holder blocks everyone that long; a long job needs renewals, not a long ttl"
    )]
    TtlTooLong {
        /// What was asked for.
        ttl: Duration,
        /// The bound, of the library or of the store.
        max: Duration,
    },
    /// The margin was below [`MIN_MARGIN`].
    #[error("a margin of {margin:?} is too small: the least is {MIN_MARGIN:?}")]
    MarginTooSmall {
        /// What was asked for.
        margin: Duration,
    },
    /// The renewal interval was below [`MIN_RENEW_EVERY`] (zero included).
    #[error(
        "renewing every {renew_every:?} would hammer the store: the least is {MIN_RENEW_EVERY:?}, ttl/3 is usual"
    )]
    RenewEveryTooShort {
        /// What was asked for.
        renew_every: Duration,
    },
    /// The triangle does not hold.
    #[error(
        "renew_every {renew_every:?} + grace {grace:?} + margin {margin:?} must be less than the ttl {ttl:?}, \
         or a healthy holder loses its lease before its first renewal: lengthen the ttl or shorten the others"
    )]
    Triangle {
        /// The ttl.
        ttl: Duration,
        /// The margin.
        margin: Duration,
        /// The renewal interval.
        renew_every: Duration,
        /// The grace.
        grace: Duration,
    },
}

impl Timing {
    /// The defaults for a ttl: margin ttl/10 (at least [`MIN_MARGIN`]), renewal every ttl/3, no grace.
    ///
    /// # Errors
    /// [`TimingError`] for a ttl outside [`MIN_TTL`]`..=`[`MAX_TTL`].
    pub fn new(ttl: Duration) -> Result<Self, TimingError> {
        if ttl < MIN_TTL {
            return Err(TimingError::TtlTooShort { ttl, min: MIN_TTL });
        }
        if ttl > MAX_TTL {
            return Err(TimingError::TtlTooLong { ttl, max: MAX_TTL });
        }
        let ttl = Duration::from_millis(ttl.as_nanos().div_ceil(1_000_000) as u64);
        let timing =
            Self { ttl, margin: (ttl / 10).max(MIN_MARGIN), renew_every: ttl / 3, grace: Duration::ZERO };
        timing.checked()
    }

    /// Another margin.
    ///
    /// # Errors
    /// [`TimingError`] if it is below [`MIN_MARGIN`] or breaks the triangle.
    pub fn with_margin(self, margin: Duration) -> Result<Self, TimingError> {
        Self { margin, ..self }.checked()
    }

    /// Another renewal interval.
    ///
    /// # Errors
    /// [`TimingError`] if it is below [`MIN_RENEW_EVERY`] or breaks the triangle.
    pub fn with_renew_every(self, renew_every: Duration) -> Result<Self, TimingError> {
        Self { renew_every, ..self }.checked()
    }

    /// Another grace.
    ///
    /// # Errors
    /// [`TimingError`] if it breaks the triangle.
    pub fn with_grace(self, grace: Duration) -> Result<Self, TimingError> {
        Self { grace, ..self }.checked()
    }

    /// Checks the ttl against what a store can keep (see [`Traits`](crate::Traits)).
    ///
    /// # Errors
    /// [`TimingError`] with the store's bound.
    pub fn within(self, min: Duration, max: Duration) -> Result<Self, TimingError> {
        match self.ttl {
            ttl if ttl < min => Err(TimingError::TtlTooShort { ttl, min }),
            ttl if ttl > max => Err(TimingError::TtlTooLong { ttl, max }),
            _ => Ok(self),
        }
    }

    fn checked(self) -> Result<Self, TimingError> {
        let Self { ttl, margin, renew_every, grace } = self;
        if margin < MIN_MARGIN {
            return Err(TimingError::MarginTooSmall { margin });
        }
        if renew_every < MIN_RENEW_EVERY {
            return Err(TimingError::RenewEveryTooShort { renew_every });
        }
        match renew_every.checked_add(grace).and_then(|sum| sum.checked_add(margin)) {
            Some(sum) if sum < ttl => Ok(self),
            _ => Err(TimingError::Triangle { ttl, margin, renew_every, grace }),
        }
    }

    /// The effective ttl, in whole milliseconds.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The margin.
    #[must_use]
    pub const fn margin(&self) -> Duration {
        self.margin
    }

    /// The renewal interval.
    #[must_use]
    pub const fn renew_every(&self) -> Duration {
        self.renew_every
    }

    /// The grace.
    #[must_use]
    pub const fn grace(&self) -> Duration {
        self.grace
    }

    /// Until when a claim may be trusted whose request was *sent* at `sent`, and of which the store says that `remaining`
    /// is left: counted from the sending, for never more than was asked for, and less the margin.
    #[must_use]
    pub fn trusted_until(&self, sent: Moment, remaining: Duration) -> Moment {
        sent.after(remaining.min(self.ttl).saturating_sub(self.margin))
    }

    /// How long a claim may be trusted, counted from the moment its request was *sent*: ttl − margin.
    #[must_use]
    pub fn trust(&self) -> Duration {
        self.ttl.saturating_sub(self.margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn ttls_outside_the_bounds_are_refused_with_the_bound() {
        for ttl in [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(999), MS, 49 * MS] {
            assert_eq!(Timing::new(ttl), Err(TimingError::TtlTooShort { ttl, min: MIN_TTL }));
        }
        for ttl in
            [MAX_TTL + MS, Duration::from_secs(u64::MAX), Duration::MAX, Duration::from_millis(u64::MAX)]
        {
            assert_eq!(Timing::new(ttl), Err(TimingError::TtlTooLong { ttl, max: MAX_TTL }));
        }
        for ttl in [50 * MS, 500 * MS, MAX_TTL] {
            assert_eq!(Timing::new(ttl).map(|t| t.ttl()), Ok(ttl));
        }
    }

    #[test]
    fn fractions_of_a_millisecond_are_rounded_up_and_reported() {
        let timing = Timing::new(Duration::from_secs(10) + Duration::from_nanos(1)).unwrap();
        assert_eq!(timing.ttl(), Duration::from_millis(10_001));
    }

    #[test]
    fn every_combination_of_absurd_durations_is_an_error_or_a_triangle() {
        let t = Duration::from_secs(2);
        let values = [Duration::ZERO, t, Duration::MAX];
        for ttl in values {
            for renew in values {
                for grace in values {
                    let built = Timing::new(ttl)
                        .and_then(|x| x.with_renew_every(renew))
                        .and_then(|x| x.with_grace(grace));
                    assert!(built.is_err(), "{ttl:?} {renew:?} {grace:?}");
                }
            }
        }
    }

    /// A renewal interval that leaves no room for its own renewal loses healthy leases for ever (B11).
    #[test]
    fn a_renewal_interval_that_cannot_work_is_refused_at_the_door() {
        let timing = Timing::new(Duration::from_secs(1)).unwrap();
        for (renew, ok) in [(333, true), (500, true), (899, true), (900, false), (1000, false), (2000, false)]
        {
            assert_eq!(timing.with_renew_every(renew * MS).is_ok(), ok, "{renew} ms");
        }
    }
}
