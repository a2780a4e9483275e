//! Events for programs: one JSON object a line, to a file, a FIFO or standard error.
//!
//! The names and fields are a contract. Writing them never holds up or ends a run, see [`outlet`](crate::outlet).

mod event;

pub use event::{Ended, Event, Outcome};

use crate::{log::Level, outlet::Outlet};
use leasehold_core::{Fence, LeaseName, ReplicaId};
use rustix::io::Errno;
use serde::Serialize;
use std::{path::Path, sync::Arc, time::Duration};

/// Where events go, and what stands in each of them.
#[derive(Debug, Clone)]
pub struct Events {
    /// `None` if nobody asked for events.
    outlet: Option<Outlet>,
    replica: Arc<str>,
    /// Renewals are events only for those who want to see everything.
    renewals: bool,
}

/// Why events cannot be written where they were asked for.
#[derive(Debug, thiserror::Error)]
#[error("--events {path}: {errno}; the lease was not asked for")]
pub struct EventsError {
    path: String,
    #[source]
    errno: Errno,
}

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event,
    lease: &'a str,
    replica: &'a str,
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
        Ok(Self { outlet, replica: replica.as_str().into(), renewals: log >= Level::Debug })
    }

    /// Writes an event of this replica.
    pub fn put(&self, lease: &LeaseName, fence: Option<Fence>, event: &Event) {
        match (&self.outlet, event) {
            (Some(_), Event::Renewed) if !self.renewals => {}
            (Some(outlet), _) => outlet.put(line(lease, &self.replica, fence, event).into_bytes()),
            (None, _) => {}
        }
    }

    /// Lets the writer catch up, for at most `within`; how many events were dropped.
    #[must_use]
    pub fn finish(&self, within: Duration) -> u64 {
        self.outlet.as_ref().map_or(0, |outlet| {
            outlet.flush(within);
            outlet.dropped()
        })
    }
}

/// One event as a line of JSON with its newline, stamped with the wall clock.
#[must_use]
pub fn line(lease: &LeaseName, replica: &str, fence: Option<Fence>, event: &Event) -> String {
    let line = Line { at: now(), event, lease: lease.as_str(), replica, fence: fence.map(Fence::get) };
    // Strings and numbers in string-keyed objects: there is no such value that JSON cannot write.
    serde_json::to_string(&line).map_or_else(|_| String::new(), |json| json + "\n")
}

/// The wall clock, for people and logs only: RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
