//! Times, errors and standings as the scripts spell them.

use leasehold_core::{Moment, Standing, StoreError, StoreErrorKind, standing::JeopardyCause};
use std::{fmt::Write, time::Duration};

pub(crate) const MS: Duration = Duration::from_millis(1);

/// The 0 of every script: far from the clock's origin, as on a machine that has been up for a while.
pub(crate) const ZERO: Moment = Moment::from_nanos(3_600_000_000_000);

/// A duration in milliseconds; `~` if it is rounded.
pub(crate) fn ms(d: Duration) -> String {
    match (d.as_nanos() / 1_000_000, d.subsec_nanos() % 1_000_000) {
        _ if d >= Duration::from_hours(1_000_000) => "for ever".to_owned(),
        (whole, 0) => whole.to_string(),
        (whole, part) => format!("~{}", whole + u128::from(part >= 500_000)),
    }
}

/// A moment, in milliseconds since the script's beginning.
pub(crate) fn at(moment: Moment) -> String {
    match moment.as_nanos() {
        u64::MAX => "the end of time".to_owned(),
        _ => ms(moment.since(ZERO)),
    }
}

pub(crate) fn error(error: &StoreError) -> String {
    match error.kind() {
        StoreErrorKind::TimedOut(waited) => format!("no answer within {}", ms(*waited)),
        StoreErrorKind::Locked(_) => "locked".to_owned(),
        StoreErrorKind::Corrupt { .. } => "corrupt".to_owned(),
        StoreErrorKind::NotWriting(_) => "not writing".to_owned(),
        StoreErrorKind::Foreign { .. } => "foreign".to_owned(),
        kind => format!("{kind:?}").to_lowercase(),
    }
}

pub(crate) fn standing(standing: &Standing) -> String {
    match standing {
        Standing::Held { until } => format!("held until {}", at(*until)),
        Standing::Jeopardy { until, cause: JeopardyCause::Store(e) } => {
            format!("in jeopardy until {} (store: {})", at(*until), error(e))
        }
        Standing::Jeopardy { until, cause } => format!("in jeopardy until {} ({cause})", at(*until)),
        Standing::HandingOver { until, step } => {
            format!("handing over until {} ({})", at(*until), step.as_str())
        }
        Standing::Lost { cause } => format!("lost ({})", cause.as_str()),
    }
}

/// What is to be done after one event: the time once, then a line an action.
pub(crate) fn step(now: Moment, lines: &[String], out: &mut String) {
    let mut time = at(now);
    for line in lines {
        let _ = writeln!(out, "{time:>6}  {line}");
        time.clear();
    }
    if lines.is_empty() {
        let _ = writeln!(out, "{time:>6}  nothing");
    }
}
