//! One time line for several processes.

use leasehold::{BootClock, Clock};
use serde::{Deserialize, Serialize};
use std::{fmt, ops::Sub, time::Duration};

/// Microseconds on the host's boot clock. All processes of one boot read the same clock, so stamps of the parent
/// and of its replicas may be compared; no wall clock could promise that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(pub u64);

impl Stamp {
    /// The present moment.
    #[must_use]
    pub fn now() -> Self {
        Self(BootClock.now().as_nanos() / 1_000)
    }

    /// This stamp plus `d`.
    #[must_use]
    pub fn after(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_micros()).unwrap_or(u64::MAX)))
    }
}

/// Zero if the right side is later: a duration is never negative.
impl Sub for Stamp {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// A duration as people read it in a table: `28 ms`, `1.204 s`.
#[derive(Debug, Clone, Copy)]
pub struct Brief(pub Duration);

impl fmt::Display for Brief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0.as_millis() {
            0 => "<1 ms".to_owned(),
            ms @ 1..1_000 => format!("{ms} ms"),
            ms => format!("{}.{:03} s", ms / 1_000, ms % 1_000),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_a_person_would_say_them() {
        let brief = |us| Brief(Duration::from_micros(us)).to_string();
        assert_eq!(brief(400), "<1 ms");
        assert_eq!(brief(28_900), "28 ms");
        assert_eq!(brief(1_204_000), "1.204 s");
        assert_eq!(format!("{:>8}", Brief(Duration::from_millis(7))), "    7 ms");
    }
}
