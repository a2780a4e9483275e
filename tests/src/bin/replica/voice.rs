//! What the replica says.

use leasehold::{Clock, Event, Fence, Finished, Happening, JeopardyCause, Release, Standing, Stood};
use leasehold_tests::{Said, What};
use std::{
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

/// One JSON line on standard output for everything that happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Voice;

pub(crate) fn now() -> u64 {
    leasehold::BootClock.now().as_nanos()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Voice {
    pub(crate) fn say(self, fence: Option<u64>, what: What) {
        print(&Said { at: now(), wall_ms: None, fence, what });
    }

    /// What the library tells its observers.
    pub(crate) fn tell(self, event: &Event) {
        let Some(what) = translated(&event.what) else { return };
        let since_epoch = event.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_ms = i64::try_from(since_epoch.as_millis()).ok();
        print(&Said { at: now(), wall_ms, fence: event.fence.map(Fence::get), what });
    }

    pub(crate) fn stood(self, stood: &Stood) {
        let what = match &stood.standing {
            Standing::Held { until } => What::StoodHeld { until: until.as_nanos() },
            Standing::Lost { cause } => What::StoodLost { cause: cause.as_str().into() },
            // Told by the event.
            Standing::Jeopardy { .. } | Standing::HandingOver { .. } => return,
        };
        self.say(Some(stood.fence.get()), what);
    }

    pub(crate) fn finished<T>(self, finished: &Finished<T>) {
        let release = finished.release.as_ref().map(|answer| match answer {
            Release::Released => "released".to_owned(),
            Release::NotHolder(_) => "not-holder".to_owned(),
            Release::Refused(error) => format!("refused: {error}"),
            Release::Unknown(error) => format!("unknown: {error}"),
        });
        let lost = finished.lost.as_ref().map(|cause| cause.as_str().to_owned());
        self.say(Some(finished.fence.get()), What::Finished { lost, release });
    }
}

fn print(said: &Said) {
    let mut line = serde_json::to_string(said).expect("plain data");
    line.push('\n');
    // One write, so that a kill leaves no half of it. A parent that has gone hears nothing; the end of the orders will
    // tell.
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

fn translated(happening: &Happening) -> Option<What> {
    Some(match happening {
        Happening::Campaigning => What::Campaigning,
        Happening::Acquired { predecessor, waited, trusted } => What::Acquired {
            fate: predecessor.fate().as_str().into(),
            after: predecessor.fence().map(Fence::get),
            waited_ms: millis(*waited),
            trusted_ns: nanos(*trusted),
        },
        Happening::Jeopardy { cause, remaining } => What::Jeopardy {
            cause: cause.as_str().into(),
            detail: match cause {
                JeopardyCause::Store(error) => crate::full(error),
                other => other.to_string(),
            },
            remaining_ms: millis(*remaining),
        },
        Happening::Renewed { remaining } => What::Renewed { remaining_ns: nanos(*remaining) },
        Happening::ClockAnomaly { asked, remaining } => {
            What::ClockAnomaly { asked_ms: millis(*asked), remaining_ms: millis(*remaining) }
        }
        Happening::Lost { cause } => What::Lost { cause: cause.as_str().into() },
        Happening::Quiescing { by, .. } => What::Quiescing { by: by.to_string() },
        Happening::WorkerEnded { outcome } => What::WorkerEnded { outcome: outcome.as_str().into() },
        Happening::Released { .. } => What::Released,
        Happening::Overrun { .. } => What::Overrun,
        // Of things that this program does not use, or that a later version may tell.
        _ => return None,
    })
}
