//! The columns of an answer, read with suspicion: whatever does not fit what we write is damage.

use crate::error::Fault;
use leasehold_core::{AttemptId, Ended, Fence, Predecessor, ReplicaId, TraceContext};
use std::{fmt::Display, sync::Arc, time::Duration};
use tokio_postgres::{Row, types::FromSql};

/// A row of an answer about one thing.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    row: &'a Row,
    /// What it is about, such as `lease "feed"`.
    key: &'a str,
}

impl<'a> Fields<'a> {
    pub(crate) const fn of(row: &'a Row, key: &'a str) -> Self {
        Self { row, key }
    }

    pub(crate) fn damage(&self, column: &str, problem: impl Display) -> Fault {
        Fault::damage(self.key, format!("{column}: {problem}"))
    }

    /// A value that may be missing.
    pub(crate) fn maybe<T: FromSql<'a>>(&self, column: &str) -> Result<Option<T>, Fault> {
        self.row.try_get(column).map_err(|error| self.damage(column, error))
    }

    /// A value.
    pub(crate) fn some<T: FromSql<'a>>(&self, column: &str) -> Result<T, Fault> {
        self.maybe(column)?.ok_or_else(|| self.damage(column, "it is missing"))
    }

    pub(crate) fn fence(&self, column: &str) -> Result<Fence, Fault> {
        self.maybe_fence(column)?.ok_or_else(|| self.damage(column, "it is missing"))
    }

    pub(crate) fn maybe_fence(&self, column: &str) -> Result<Option<Fence>, Fault> {
        let fence = |number: i64| {
            let number = u64::try_from(number).map_err(|_| self.damage(column, "it is no fence"))?;
            Fence::new(number).map_err(|error| self.damage(column, error))
        };
        self.maybe::<i64>(column)?.map(fence).transpose()
    }

    pub(crate) fn replica(&self, column: &str) -> Result<ReplicaId, Fault> {
        ReplicaId::new(self.some::<&str>(column)?).map_err(|error| self.damage(column, error))
    }

    pub(crate) fn maybe_replica(&self, column: &str) -> Result<Option<ReplicaId>, Fault> {
        let replica = |text: &str| ReplicaId::new(text).map_err(|error| self.damage(column, error));
        self.maybe::<&str>(column)?.map(replica).transpose()
    }

    pub(crate) fn attempt(&self, column: &str) -> Result<AttemptId, Fault> {
        let bytes: &[u8] = self.some(column)?;
        let bytes = <[u8; 16]>::try_from(bytes).map_err(|_| self.damage(column, "it has not 16 bytes"))?;
        Ok(AttemptId::from_bytes(bytes))
    }

    /// A trace; none if it is missing or no valid one: it is nobody's business to repair those.
    pub(crate) fn trace(&self, column: &str) -> Result<TraceContext, Fault> {
        Ok(self.maybe::<&str>(column)?.map_or(TraceContext::NONE, TraceContext::parse))
    }

    /// A span of time, in microseconds.
    pub(crate) fn span(&self, column: &str) -> Result<Duration, Fault> {
        let micros: i64 = self.some(column)?;
        Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }

    /// How the term before ended.
    pub(crate) fn predecessor(&self) -> Result<Predecessor, Fault> {
        let Some(fate) = self.maybe::<&str>("fate")? else { return Ok(Predecessor::None) };
        let ended = Ended {
            fence: self.fence("past_fence")?,
            replica: self.replica("past_replica")?,
            trace: self.trace("past_trace")?,
        };
        Ok(match fate {
            "released" => Predecessor::Released(ended),
            "handed-off" => Predecessor::HandedOff(ended),
            "expired" => Predecessor::Expired(ended),
            "crashed" => Predecessor::Crashed(ended),
            "forced" => {
                let reason: Arc<str> = self.some::<&str>("forced_why")?.into();
                Predecessor::Forced { ended, by: self.replica("forced_by")?, reason }
            }
            other => return Err(self.damage("fate", format_args!("{other:?} is no fate"))),
        })
    }
}

/// What the fields of a lease are called in errors.
pub(crate) fn key(lease: &str) -> String {
    format!("table lease, row {lease:?}")
}

/// A number for the server. Fences end at 2^53.
pub(crate) fn number(fence: Fence) -> i64 {
    i64::try_from(fence.get()).unwrap_or(i64::MAX)
}

/// Whole microseconds, rounded up: a claim lives at least as long as its holder believes.
pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX)
}

/// The one row of an answer.
pub(crate) fn only(rows: &[Row]) -> Result<&Row, Fault> {
    match rows {
        [row] => Ok(row),
        _ => Err(Fault::damage("the layout", "a function of it answered no row, or several")),
    }
}
