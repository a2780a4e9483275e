//! What happened to one lease between two states of it.
//!
//! A store shows states, and may leave out those that were overtaken. From two states the events between them follow as
//! far as anybody needs them: each term that is seen, how the one before it ended, and whether there is one now.

use crate::events::{self, Event, Past};
use jiff::Timestamp;
use leasehold::{Fate, Fence, LeaseRecord, LeaseState, Predecessor, ReplicaId};

/// What of a lease has been told.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// The last ended term of which was told.
    ended: Option<Fence>,
    now: Option<Now>,
}

#[derive(Debug, Clone, PartialEq)]
enum Now {
    Held(Fence),
    Reserved(ReplicaId),
    Vacant,
}

struct Chapter<'a> {
    event: Event,
    replica: Option<&'a ReplicaId>,
    fence: Option<Fence>,
}

impl Story {
    /// The lines that a new state adds.
    pub(super) fn goes_on(&mut self, record: &LeaseRecord, json: bool) -> String {
        let at = Timestamp::now();
        let chapters = self.chapters(record);
        chapters
            .iter()
            .map(|Chapter { event, replica, fence }| {
                if json {
                    events::line(at, &record.name, *replica, *fence, event)
                } else {
                    format!("{at:.3}  {}  {}\n", record.name, sentence(event, *replica, *fence))
                }
            })
            .collect()
    }

    fn chapters<'a>(&mut self, record: &'a LeaseRecord) -> Vec<Chapter<'a>> {
        let mut chapters = Vec::new();
        let before = &record.predecessor;
        if before.fence() > self.ended {
            // What ended before we began to look is told with the term that followed, or with the vacancy.
            if self.now.is_some() {
                chapters.extend(ending(before));
            }
            self.ended = before.fence();
        }
        let now = match &record.state {
            LeaseState::Held { claim, .. } => Now::Held(claim.fence),
            LeaseState::Reserved { heir, .. } => Now::Reserved(heir.clone()),
            LeaseState::Vacant => Now::Vacant,
        };
        if self.now.as_ref() != Some(&now) {
            chapters.extend(match &record.state {
                LeaseState::Held { claim, .. } => Some(Chapter {
                    event: Event::Acquired { predecessor: before.into(), waited_ms: None, trusted_ms: None },
                    replica: Some(&claim.replica),
                    fence: Some(claim.fence),
                }),
                // Told as a release in the heir's favour.
                LeaseState::Reserved { heir, .. } => Some(Chapter {
                    event: Event::Released { heir: Some(heir.to_string()) },
                    replica: before.ended().map(|ended| &ended.replica),
                    fence: before.fence(),
                }),
                LeaseState::Vacant => Some(Chapter {
                    event: Event::Vacant { predecessor: before.into() },
                    replica: None,
                    fence: None,
                }),
            });
            self.now = Some(now);
        }
        chapters
    }
}

/// The end of a term, where it is an event of its own. A silent end is told by the vacancy.
fn ending(before: &Predecessor) -> Option<Chapter<'_>> {
    let ended = before.ended()?;
    let event = match before {
        Predecessor::Released(_) => Event::Released { heir: None },
        Predecessor::Forced { by, reason, .. } => {
            Event::Forced { by: by.to_string(), reason: reason.to_string() }
        }
        _ => match before.fate() {
            fate @ (Fate::Expired | Fate::Crashed) => Event::Lost { cause: fate.as_str().to_owned() },
            _ => return None,
        },
    };
    Some(Chapter { event, replica: Some(&ended.replica), fence: Some(ended.fence) })
}

/// An event for people.
fn sentence(event: &Event, replica: Option<&ReplicaId>, fence: Option<Fence>) -> String {
    let who = match (replica, fence) {
        (Some(replica), Some(fence)) => format!("{replica} (fence {fence})"),
        (Some(replica), None) => replica.to_string(),
        _ => "nobody".to_owned(),
    };
    match event {
        Event::Acquired { predecessor, .. } => format!("held by {who}, {}", after(predecessor)),
        Event::Released { heir: None } => format!("released by {who}"),
        Event::Released { heir: Some(heir) } => format!("handed by {who} to {heir}"),
        Event::Forced { by, reason } => format!("taken from {who} by {by}: {reason}"),
        Event::Lost { cause } => format!("lost by {who}: {cause}"),
        Event::Vacant { predecessor } => format!("vacant, {}", after(predecessor)),
        // No other is told of a state.
        other => format!("{other:?}"),
    }
}

fn after(past: &Past) -> String {
    match past.fence {
        Some(fence) => format!("after fence {fence} ({})", past.fate),
        None => "never held before".to_owned(),
    }
}
