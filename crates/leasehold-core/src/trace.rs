//! An opaque carrier for a trace over messages, timers, processes and records.

use std::{fmt, sync::Arc};

/// A W3C `traceparent`, or nothing. Core knows its form, not its meaning: no telemetry crate is involved.
///
/// What a store or a letter contains is untrusted input: [`TraceContext::parse`] takes the one valid form of
/// version 00 and turns everything else into the empty context. `tracestate` and baggage are never read.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct TraceContext(Option<Arc<str>>);

impl TraceContext {
    /// No trace.
    pub const NONE: Self = Self(None);

    /// Reads a `traceparent` (`00-` 32 hex `-` 16 hex `-` 2 hex, lower case, ids not all zero); anything else is the empty context.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let hex = |part: &str, len: usize| {
            part.len() == len && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let live = |part: &str, len| hex(part, len) && part.bytes().any(|b| b != b'0');
        let mut parts = text.split('-');
        let valid = text.len() == 55
            && parts.next() == Some("00")
            && parts.next().is_some_and(|p| live(p, 32))
            && parts.next().is_some_and(|p| live(p, 16))
            && parts.next().is_some_and(|p| hex(p, 2))
            && parts.next().is_none();
        Self(valid.then(|| text.into()))
    }

    /// The `traceparent`, if there is one.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("no trace"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_valid_traceparent_is_carried() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(TraceContext::parse(good).traceparent(), Some(good));
        let zero = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let zero_span = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01";
        let version = "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for bad in
            ["", "garbage", zero, zero_span, version, &good.to_uppercase(), &"0".repeat(100_000), "00-\0🦀"]
        {
            assert_eq!(TraceContext::parse(bad), TraceContext::NONE);
        }
    }
}
