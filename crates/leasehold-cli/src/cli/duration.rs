//! Durations as people write them: `300ms`, `10s`, `5m`, `1h30m`.

use leasehold::leasehold_core::timing::{MAX_TTL, MIN_TTL};
use std::time::Duration;

/// The longest wait, grace or measurement. Whoever means more means "for ever".
pub const MAX_SPAN: Duration = Duration::from_hours(24 * 366);

/// Why a duration was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// Not the grammar of durations.
    #[error("{0}; write a number and a unit, as in 300ms, 10s, 5m, 1h30m")]
    Unreadable(#[from] humantime::DurationError),
    /// Only a number.
    #[error("the unit is missing; did you mean {0}s or {0}ms?")]
    NoUnit(String),
    /// Below zero.
    #[error("a duration must not be negative")]
    Negative,
    /// Zero, which would mean "at once" to one reader and "for ever" to another.
    #[error("a duration of zero is refused; the least is {}", humantime::format_duration(*least))]
    Zero {
        /// The bound.
        least: Duration,
    },
    /// Below the bound.
    #[error("{} is too short; the least is {}", humantime::format_duration(*given), humantime::format_duration(*least))]
    TooShort {
        /// What was given.
        given: Duration,
        /// The bound.
        least: Duration,
    },
    /// Above the bound.
    #[error("{} is too long; the most is {} h", humantime::format_duration(*given), most.as_secs() / 3600)]
    TooLong {
        /// What was given.
        given: Duration,
        /// The bound.
        most: Duration,
    },
}

/// A time to live: [`MIN_TTL`] to [`MAX_TTL`].
///
/// # Errors
/// [`DurationError`] names the bound.
pub fn ttl(text: &str) -> Result<Duration, DurationError> {
    between(text, MIN_TTL, MAX_TTL)
}

/// A wait, a grace, a length of measurement: 1 ms to [`MAX_SPAN`].
///
/// # Errors
/// [`DurationError`] names the bound.
pub fn span(text: &str) -> Result<Duration, DurationError> {
    between(text, Duration::from_millis(1), MAX_SPAN)
}

fn between(text: &str, least: Duration, most: Duration) -> Result<Duration, DurationError> {
    let text = text.trim();
    if text.starts_with(['-', '−']) {
        return Err(DurationError::Negative);
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.bytes().all(|b| b == b'0') {
            true => Err(DurationError::Zero { least }),
            false => Err(DurationError::NoUnit(text.to_owned())),
        };
    }
    match humantime::parse_duration(text)? {
        Duration::ZERO => Err(DurationError::Zero { least }),
        given if given < least => Err(DurationError::TooShort { given, least }),
        given if given > most => Err(DurationError::TooLong { given, most }),
        given => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_read() {
        for (text, ms) in
            [("300ms", 300), ("10s", 10_000), ("5m", 300_000), ("1h30m", 5_400_000), ("1 h", 3_600_000)]
        {
            assert_eq!(ttl(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(ttl("24h"), Ok(MAX_TTL));
        assert_eq!(span("7d"), Ok(Duration::from_hours(168)));
    }

    /// B55, B56, B61: never zero, never infinite, never a panic, and the bound is named.
    #[test]
    fn what_cannot_be_meant_is_refused_with_the_bound() {
        for text in ["0", "0s", "0ms", "00", "0h0m"] {
            assert_eq!(ttl(text), Err(DurationError::Zero { least: MIN_TTL }), "{text}");
        }
        for text in ["-1s", "-10", " -5m"] {
            assert_eq!(ttl(text), Err(DurationError::Negative), "{text}");
        }
        assert_eq!(ttl("10"), Err(DurationError::NoUnit("10".into())));
        for text in ["1ns", "999us", "1ms", "49ms"] {
            assert!(matches!(ttl(text), Err(DurationError::TooShort { least: MIN_TTL, .. })), "{text}");
        }
        for text in ["25h", "86400001ms", "1y", "300y", "584542046090years"] {
            assert!(matches!(ttl(text), Err(DurationError::TooLong { most: MAX_TTL, .. })), "{text}");
        }
        for text in [
            "",
            " ",
            "1e9",
            "s",
            "ten",
            "1.s",
            "10 parsecs",
            "18446744073709551616s",
            "99999999999999999999ms",
        ] {
            let refused = ttl(text).expect_err(text);
            assert!(matches!(refused, DurationError::Unreadable(_)), "{text}: {refused}");
        }
        assert!(ttl("18446744073709551615s").is_err());
        assert!(ttl("25h").is_err_and(|e| e.to_string().contains("24 h")));
        assert!(ttl("1ms").is_err_and(|e| e.to_string().contains("50ms")));
    }
}
