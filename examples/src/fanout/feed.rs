//! The upstream feed: numbered events, readable from any number that is still retained.
//!
//! `GET /events?from=N` answers NDJSON, one event a line, and stays open for what is still to come; with `&to=M` it
//! ends after M. An event that is no longer retained is `410 Gone`, never silently skipped.

use super::event::Event;
use axum::{
    Json,
    body::{Body, Bytes},
    extract::{Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// A feed. Clones are the same feed.
#[derive(Debug, Clone)]
pub struct Feed {
    retained: Arc<Mutex<VecDeque<Event>>>,
    retention: usize,
    // The number of the newest event: readers sleep on it. Its lock is never held together with the other.
    head: Arc<watch::Sender<u64>>,
}

/// What a reader asks for.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Range {
    /// The first event wanted; 1 by default.
    #[serde(default = "first")]
    pub from: u64,
    /// The last event wanted; without it the answer does not end.
    pub to: Option<u64>,
}

const fn first() -> u64 {
    1
}

/// The event asked for is no longer kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "the feed retains no event before {oldest}: nothing was read, and a reader cannot resume from where it was"
)]
pub struct Gone {
    /// The oldest event that is kept.
    pub oldest: u64,
}

impl Feed {
    /// An empty feed that keeps the newest `retention` events (at least 1).
    #[must_use]
    pub fn new(retention: usize) -> Self {
        Self { retained: Arc::default(), retention: retention.max(1), head: Arc::new(watch::Sender::new(0)) }
    }

    /// Emits the next event, and returns it.
    pub fn emit(&self, payload: String) -> Event {
        let event = {
            let mut retained = self.lock();
            let event = Event { seq: *self.head.borrow() + 1, payload };
            if retained.len() == self.retention {
                retained.pop_front();
            }
            retained.push_back(event.clone());
            event
        };
        self.head.send_replace(event.seq);
        event
    }

    /// The number of the newest event; 0 before the first.
    #[must_use]
    pub fn head(&self) -> u64 {
        *self.head.borrow()
    }

    /// The events from `from` on, at most `limit` of them: empty if none is there yet.
    ///
    /// # Errors
    /// [`Gone`] if that event is no longer retained.
    pub fn read(&self, from: u64, limit: usize) -> Result<Vec<Event>, Gone> {
        let retained = self.lock();
        let Some(oldest) = retained.front().map(|e| e.seq) else { return Ok(Vec::new()) };
        let skip = from.max(1).checked_sub(oldest).ok_or(Gone { oldest })?;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(retained.iter().skip(skip).take(limit).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Event>> {
        // No code of a caller runs under this lock.
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handler of `GET /events`.
pub async fn events(State(feed): State<Feed>, Query(range): Query<Range>) -> Response {
    if let Err(gone) = feed.read(range.from, 1) {
        return (StatusCode::GONE, Json(gone)).into_response();
    }
    let head = feed.head.subscribe();
    let start = (feed, head, range.from.max(1));
    let lines = stream::unfold(start, move |(feed, mut head, next)| async move {
        if range.to.is_some_and(|to| next > to) {
            return None;
        }
        head.wait_for(|newest| *newest >= next).await.ok()?;
        let limit = range.to.map_or(CHUNK, |to| usize::try_from(to - next + 1).unwrap_or(CHUNK).min(CHUNK));
        // A reader so slow that its next event is gone is cut off: it comes back and gets its 410.
        let events = feed.read(next, limit).ok()?;
        let next = events.last()?.seq + 1;
        let mut chunk = Vec::new();
        for event in &events {
            serde_json::to_writer(&mut chunk, event).ok()?;
            chunk.push(b'\n');
        }
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(chunk)), (feed, head, next)))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

/// Events in one chunk of the answer, at most.
const CHUNK: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(events: u64, retention: usize) -> Feed {
        let feed = Feed::new(retention);
        for _ in 0..events {
            feed.emit("an event".to_owned());
        }
        feed
    }

    fn numbers(events: &[Event]) -> Vec<u64> {
        events.iter().map(|e| e.seq).collect()
    }

    #[test]
    fn a_reader_resumes_at_any_retained_event_and_learns_what_is_gone() {
        let feed = feed(10, 4);
        assert_eq!(feed.head(), 10);
        assert_eq!(numbers(&feed.read(8, 99).unwrap()), [8, 9, 10]);
        assert_eq!(numbers(&feed.read(7, 2).unwrap()), [7, 8]);
        assert_eq!(feed.read(6, 1), Err(Gone { oldest: 7 }));
        assert_eq!(numbers(&feed.read(11, 99).unwrap()), [0; 0], "the future is empty, not gone");
    }

    async fn body(feed: &Feed, range: Range) -> (StatusCode, String) {
        let answer = events(State(feed.clone()), Query(range)).await;
        let status = answer.status();
        let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_range_ends_after_its_last_event_and_waits_for_those_to_come() {
        let feed = feed(3, 99);
        let reading = {
            let feed = feed.clone();
            tokio::spawn(async move { body(&feed, Range { from: 2, to: Some(5) }).await })
        };
        tokio::task::yield_now().await;
        feed.emit("an event".to_owned());
        feed.emit("an event".to_owned());
        let (status, text) = reading.await.unwrap();
        assert_eq!(status, StatusCode::OK);
        let seqs: Vec<u64> = text.lines().map(|l| serde_json::from_str::<Event>(l).unwrap().seq).collect();
        assert_eq!(seqs, [2, 3, 4, 5]);
    }

    #[tokio::test]
    async fn what_is_no_longer_retained_is_gone_not_skipped() {
        let (status, text) = body(&feed(10, 4), Range { from: 2, to: Some(8) }).await;
        assert_eq!((status, text.as_str()), (StatusCode::GONE, r#"{"oldest":7}"#));
    }
}
