//! Events for programs: one JSON object a line, to a file, a FIFO or standard error.
//!
//! The names and fields are a contract. Writing them never holds up or ends a run, see [`outlet`](crate::outlet).

mod event;

pub(crate) use event::ms;
pub use event::{Event, Past};

use crate::{child::ChildStatus, log::Level, outlet::Outlet};
use jiff::Timestamp;
use leasehold::{Fence, Happening, LeaseName, ReplicaId};
use rustix::io::Errno;
use serde::Serialize;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

/// Where events go, and what stands in each of them. Cheap to clone; clones are the same.
#[derive(Debug, Clone)]
pub struct Events {
    /// `None` if nobody asked for events.
    outlet: Option<Outlet>,
    replica: ReplicaId,
    /// Renewals are events only for those who want to see everything.
    renewals: bool,
    /// The status of the command that ended last, or [`UNKNOWN`]: the library knows that a worker ended, not with what.
    status: Arc<AtomicU16>,
}

/// No exit status.
const UNKNOWN: u16 = 1 << 8;

/// Why events cannot be written where they were asked for.
#[derive(Debug, thiserror::Error)]
#[error("events cannot be written to {path}: {errno}; the lease was not asked for")]
pub struct EventsError {
    path: String,
    #[source]
    errno: Errno,
}

/// One event, in the order of its fields.
#[derive(Serialize)]
struct Line<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event,
    lease: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
}

impl Events {
    /// Opens what `--events` names: a path, `-` for standard error, or nothing.
    ///
    /// # Errors
    /// [`EventsError`] if the path cannot be opened now. What fails later costs events only.
    pub fn open(path: Option<&Path>, replica: &ReplicaId, log: Level) -> Result<Self, EventsError> {
        let outlet = match path {
            None => None,
            Some(path) if path == Path::new("-") => Some(Outlet::stderr().clone()),
            Some(path) => Some(
                Outlet::append(path)
                    .map_err(|errno| EventsError { path: path.display().to_string(), errno })?,
            ),
        };
        let status = Arc::new(AtomicU16::new(UNKNOWN));
        Ok(Self { outlet, replica: replica.clone(), renewals: log >= Level::Debug, status })
    }

    /// Writes an event of this replica that happens now.
    pub fn put(&self, lease: &LeaseName, fence: Option<Fence>, event: &Event) {
        self.write(Timestamp::now(), lease, fence, event);
    }

    /// Writes an event that the library told.
    pub fn observe(&self, told: &leasehold::Event) {
        if self.outlet.is_none() || (matches!(told.what, Happening::Renewed { .. }) && !self.renewals) {
            return;
        }
        let Some(mut event) = Event::told(&told.what) else { return };
        if let Event::WorkerEnded { status, .. } = &mut event {
            *status = u8::try_from(self.status.swap(UNKNOWN, Ordering::Relaxed)).ok();
        }
        // A clock beyond the year 9999 is no reason to lose the event.
        let at = Timestamp::try_from(told.at).unwrap_or(Timestamp::MAX);
        self.write(at, &told.lease, told.fence, &event);
    }

    /// Notes how the command ended, for the event that will tell it.
    pub fn note_status(&self, status: ChildStatus) {
        self.status.store(status.code().into(), Ordering::Relaxed);
    }

    /// Lets the writer catch up, for at most `within`; how many events were dropped.
    #[must_use]
    pub fn finish(&self, within: Duration) -> u64 {
        self.outlet.as_ref().map_or(0, |outlet| {
            outlet.flush(within);
            outlet.dropped()
        })
    }

    fn write(&self, at: Timestamp, lease: &LeaseName, fence: Option<Fence>, event: &Event) {
        if let Some(outlet) = &self.outlet {
            outlet.put(line(at, lease, Some(&self.replica), fence, event).into_bytes());
        }
    }
}

/// One event as a line of JSON with its newline.
#[must_use]
pub fn line(
    at: Timestamp,
    lease: &LeaseName,
    replica: Option<&ReplicaId>,
    fence: Option<Fence>,
    event: &Event,
) -> String {
    let (lease, replica) = (lease.as_str(), replica.map(ReplicaId::as_str));
    let line = Line { at: format!("{at:.3}"), event, lease, replica, fence: fence.map(Fence::get) };
    // Strings and numbers under string keys: there is no such value that JSON cannot write.
    serde_json::to_string(&line).map_or_else(|_| String::new(), |json| json + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_with_the_fields_of_the_contract() {
        let at: Timestamp = "2026-03-01T12:00:00.1234Z".parse().unwrap();
        let lease = LeaseName::new("a \"b\" ü").unwrap();
        let replica = ReplicaId::new("r1").unwrap();
        let event = Event::Acquired {
            predecessor: Past { fate: "expired", fence: Some(6) },
            waited_ms: Some(12),
            trusted_ms: Some(9000),
        };
        assert_eq!(
            line(at, &lease, Some(&replica), Some(Fence::new(7).unwrap()), &event),
            concat!(
                r#"{"at":"2026-03-01T12:00:00.123Z","event":"acquired","#,
                r#""predecessor":{"fate":"expired","fence":6},"waited_ms":12,"trusted_ms":9000,"#,
                r#""lease":"a \"b\" ü","replica":"r1","fence":7}"#,
                "\n"
            )
        );
        assert_eq!(
            line(at, &lease, None, None, &Event::Campaigning),
            "{\"at\":\"2026-03-01T12:00:00.123Z\",\"event\":\"campaigning\",\"lease\":\"a \\\"b\\\" ü\"}\n"
        );
    }
}
