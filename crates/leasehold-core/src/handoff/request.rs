//! Asking for a handoff by letter, from any machine that reaches the store, and hearing how it goes.
//!
//! Whoever asks opens an inbox of its own and writes to the replica that the record shows as the holder. Nobody answers
//! for a replica that is gone: the asker's own time is the bound. As for all letters, anyone with access to the store can
//! write one; what it can do is what `release --force` can, only gentler.

use super::{
    Ending, HandoffId, Step, To,
    wire::{MAX_BODY_BYTES, MAX_REMAINING, OLDEST_READER, Unreadable, VERSION, cut},
};
use crate::{Envelope, Fence, LeaseName, ReplicaId, TraceContext};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The envelope's kind of a [`Request`].
pub const ASK: &str = "handoff.ask";
/// The envelope's kind of [`News`].
pub const NEWS: &str = "handoff.news";

/// Asks whoever leads to hand over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// A fresh id; the news about it carry it.
    pub id: HandoffId,
    /// The lease.
    pub lease: LeaseName,
    /// In whose favour.
    pub to: To,
    /// As [`Ask::within`](super::Ask::within).
    pub within: Duration,
    /// Why, for people to read. Cut to [`MAX_WHY_BYTES`](super::wire::MAX_WHY_BYTES) when it is sent.
    pub reason: Arc<str>,
    /// The trace it belongs to.
    pub trace: TraceContext,
}

/// What became of a request, step by step. The last one has an [`outcome`](News::outcome).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// The request, by its id.
    pub handoff: String,
    /// The step: the words of [`Step::as_str`](super::Step::as_str), or `refused`.
    pub step: String,
    /// The replica that the step is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What else there is to say, for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The new fence, once somebody else leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// Since the incumbent took the request up, in milliseconds.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// How long nobody led, in microseconds: from the join of the old worker to the news that the new one was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_us: Option<u64>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Somebody else leads.
    Done,
    /// The incumbent still leads; a request that was refused counts as this.
    Aborted,
    /// The incumbent leads no more, and nobody is known to have taken over.
    Released,
}

impl News {
    /// The news of a step; of the last one, with the time in which nobody led, if that is known.
    #[must_use]
    pub fn of(id: HandoffId, step: &Step, elapsed: Duration, gap: Option<Duration>) -> Self {
        let fence = match step {
            Step::Ended(Ending::Done { fence, .. }) => Some(fence.get()),
            _ => None,
        };
        Self {
            handoff: id.to_string(),
            step: step.as_str().into(),
            to: step.partner().map(ToString::to_string),
            why: step.why(),
            fence,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            gap_us: gap.map(|gap| u64::try_from(gap.as_micros()).unwrap_or(u64::MAX)),
        }
    }

    /// How it ended, if this is the end.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match self.step.as_str() {
            "done" => Some(Outcome::Done),
            "aborted" | "refused" => Some(Outcome::Aborted),
            "vacated" => Some(Outcome::Released),
            _ => None,
        }
    }
}

/// The news that a request was not taken up, and the lease is as it was.
#[must_use]
pub fn refusal(id: HandoffId, why: &str) -> News {
    News {
        handoff: id.to_string(),
        step: "refused".into(),
        to: None,
        why: Some(why.to_owned()),
        fence: None,
        elapsed_ms: 0,
        gap_us: None,
    }
}

#[derive(Serialize, Deserialize)]
struct Body {
    v: u32,
    min: u32,
    handoff: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    within_ms: u64,
    reason: String,
}

#[derive(Serialize, Deserialize)]
struct NewsBody {
    v: u32,
    min: u32,
    #[serde(flatten)]
    news: News,
}

/// The envelope of a request from `from`, whose inbox the news will come to.
#[must_use]
pub fn seal(request: &Request, from: &ReplicaId) -> Envelope {
    let to = match &request.to {
        To::Anyone => None,
        To::Replica(replica) => Some(replica.to_string()),
    };
    let body = Body {
        v: VERSION,
        min: OLDEST_READER,
        handoff: request.id.to_string(),
        to,
        within_ms: u64::try_from(request.within.min(MAX_REMAINING).as_millis()).unwrap_or(u64::MAX),
        reason: cut(&request.reason).to_owned(),
    };
    envelope(ASK, &request.lease, from, &body, &request.trace)
}

/// Reads a request.
///
/// # Errors
/// [`Unreadable`]; the reader ignores the letter then.
pub fn open(envelope: &Envelope) -> Result<Request, Unreadable> {
    let body: Body = read(envelope, ASK)?;
    let to = match body.to {
        None => To::Anyone,
        Some(to) => To::Replica(
            ReplicaId::new(to).map_err(|_| Unreadable::Damaged("the replica named is no replica id"))?,
        ),
    };
    Ok(Request {
        id: HandoffId::from_hex(&body.handoff).ok_or(Unreadable::Damaged("the id is not 32 hex digits"))?,
        lease: envelope.lease.clone(),
        to,
        within: Duration::from_millis(body.within_ms).min(MAX_REMAINING),
        reason: Arc::from(cut(&body.reason)),
        trace: envelope.trace.clone(),
    })
}

/// The envelope of news about a request.
#[must_use]
pub fn seal_news(news: &News, lease: &LeaseName, from: &ReplicaId, trace: &TraceContext) -> Envelope {
    let body = NewsBody { v: VERSION, min: OLDEST_READER, news: news.clone() };
    envelope(NEWS, lease, from, &body, trace)
}

/// Reads news.
///
/// # Errors
/// [`Unreadable`]; the reader ignores the letter then.
pub fn open_news(envelope: &Envelope) -> Result<News, Unreadable> {
    let NewsBody { news, .. } = read(envelope, NEWS)?;
    if news.fence.is_some_and(|fence| Fence::new(fence).is_err()) {
        return Err(Unreadable::Damaged("a fence is out of its range"));
    }
    Ok(news)
}

fn envelope(
    kind: &str,
    lease: &LeaseName,
    from: &ReplicaId,
    body: &impl Serialize,
    trace: &TraceContext,
) -> Envelope {
    let body = serde_json::to_vec(body).expect("numbers and strings are always JSON");
    Envelope {
        from: from.clone(),
        lease: lease.clone(),
        kind: kind.into(),
        body: body.into(),
        trace: trace.clone(),
    }
}

fn read<T: for<'a> Deserialize<'a>>(envelope: &Envelope, kind: &str) -> Result<T, Unreadable> {
    if &*envelope.kind != kind {
        return Err(Unreadable::NotOurs);
    }
    if envelope.body.len() > MAX_BODY_BYTES {
        return Err(Unreadable::TooLarge(envelope.body.len()));
    }
    super::wire::readable(&envelope.body)?;
    serde_json::from_slice(&envelope.body)
        .map_err(|_| Unreadable::Damaged("a field is missing, or out of its range"))
}
