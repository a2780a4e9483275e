//! `status`: who holds what.

mod table;

use crate::{
    cli::{Common, List},
    events::{Past, ms},
    exit::Exit,
    say,
    session::{Session, store_failed},
};
use jiff::Timestamp;
use leasehold::{Candidacy, LeaseRecord, LeaseState, Predecessor, StoreError};
use serde::Serialize;

/// One lease as `--json` shows it. Times are in milliseconds.
#[derive(Debug, Serialize)]
struct Row {
    lease: String,
    /// `held`, `reserved` (for an heir who has not come yet) or `vacant`.
    state: &'static str,
    /// Of the present term; of the last one if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    /// The holder, or the heir.
    #[serde(skip_serializing_if = "Option::is_none")]
    replica: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_ms: Option<u64>,
    /// RFC 3339, by this host's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_for_ms: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    crash_witness: bool,
    predecessor: Before,
    /// Who waits for it, in the order of their turns.
    candidates: Vec<Waiting>,
}

#[derive(Debug, Serialize)]
struct Before {
    #[serde(flatten)]
    past: Past,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Waiting {
    replica: String,
    priority: i32,
}

pub(super) async fn status(list: List, common: Common) -> Result<Exit, Exit> {
    let session = Session::open(common).await?;
    let records = records(&list, &session).await?;
    let mut exit = Exit::Done;
    let mut rows = Vec::new();
    for record in records {
        match record {
            Ok(record) => {
                let candidates = session.ask(session.store.candidates(&record.name)).await?;
                rows.push(Row::of(&record, &candidates));
            }
            // One damaged record hides no other, but a script must not take the list for whole.
            Err(error) => exit = store_failed(&error),
        }
    }
    let text = if list.json {
        // As in `events::line`: what is written here can be written.
        rows.iter().filter_map(|row| serde_json::to_string(row).ok()).map(|row| row + "\n").collect()
    } else {
        table::of(&rows)
    };
    say::out(&text).ok();
    Ok(exit)
}

async fn records(list: &List, session: &Session) -> Result<Vec<Result<LeaseRecord, StoreError>>, Exit> {
    if list.names.is_empty() {
        return session.ask(session.store.list("")).await;
    }
    let mut records = Vec::new();
    for name in &list.names {
        records.push(session.ask(async { Ok(session.store.inspect(name).await) }).await?);
    }
    Ok(records)
}

impl Row {
    fn of(record: &LeaseRecord, candidates: &[Candidacy]) -> Self {
        let mut row = Self {
            lease: record.name.to_string(),
            state: "vacant",
            fence: record.counter.map(leasehold::Fence::get),
            replica: None,
            remaining_ms: None,
            since: None,
            held_for_ms: None,
            crash_witness: false,
            predecessor: Before::of(&record.predecessor),
            candidates: candidates
                .iter()
                .map(|c| Waiting { replica: c.replica.to_string(), priority: c.priority })
                .collect(),
        };
        match &record.state {
            LeaseState::Vacant => {}
            LeaseState::Reserved { heir, remaining } => {
                row.state = "reserved";
                row.replica = Some(heir.to_string());
                row.remaining_ms = Some(ms(*remaining));
            }
            LeaseState::Held { claim, remaining, held_for, crash_witness } => {
                row.state = "held";
                row.fence = Some(claim.fence.get());
                row.replica = Some(claim.replica.to_string());
                row.remaining_ms = Some(ms(*remaining));
                row.since = Timestamp::now().checked_sub(*held_for).ok().map(|since| format!("{since:.3}"));
                row.held_for_ms = Some(ms(*held_for));
                row.crash_witness = *crash_witness;
            }
        }
        row
    }
}

impl Before {
    fn of(predecessor: &Predecessor) -> Self {
        let (by, reason) = match predecessor {
            Predecessor::Forced { by, reason, .. } => (Some(by.to_string()), Some(reason.to_string())),
            _ => (None, None),
        };
        let replica = predecessor.ended().map(|ended| ended.replica.to_string());
        Self { past: predecessor.into(), replica, by, reason }
    }
}
