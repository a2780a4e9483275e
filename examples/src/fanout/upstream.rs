//! The HTTP server of the parent (feed and directory), and the client side of it that a leader uses.

use super::{
    directory::{self, Directory},
    event::Event,
    feed::{self, Feed, Gone},
};
use axum::{Router, routing::get};
use futures_util::StreamExt;
use reqwest::{Response, StatusCode};
use std::{collections::BTreeMap, io, net::SocketAddr};
use tokio::net::TcpListener;

/// Serves the feed and the directory on a free port of the loopback interface until the runtime ends.
///
/// # Errors
/// When no port can be bound.
pub async fn serve(feed: Feed, directory: Directory) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let addr = listener.local_addr()?;
    let app = Router::new()
        .route("/events", get(feed::events).with_state(feed))
        .route("/replicas", get(directory::replicas).with_state(directory));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(addr)
}

/// The parent's server, as a replica sees it.
#[derive(Debug, Clone)]
pub struct Upstream {
    base: String,
    http: reqwest::Client,
}

/// Reading the feed failed. What was read before it stands; a reader may resume from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The feed no longer has what was asked for.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The feed could not be reached, or the connection broke.
    #[error("the feed cannot be read: {0}")]
    Broken(#[from] reqwest::Error),
    /// A line is not an event.
    #[error("the feed sent a line that is not an event: {0}")]
    Garbled(#[from] serde_json::Error),
    /// The feed closed the stream, which it does not do while it lives.
    #[error("the feed ended the stream")]
    Ended,
}

impl Upstream {
    /// The server at `addr`.
    #[must_use]
    pub fn new(addr: SocketAddr, http: reqwest::Client) -> Self {
        Self { base: format!("http://{addr}"), http }
    }

    /// Where `replica` is now, if it is anywhere.
    pub async fn find(&self, replica: &str) -> Option<SocketAddr> {
        let answer = self.http.get(format!("{}/replicas", self.base)).send().await.ok()?;
        answer.json::<BTreeMap<String, SocketAddr>>().await.ok()?.get(replica).copied()
    }

    /// Reads from `from` on for ever, and hands over each piece as it comes. Ends only with an error.
    pub async fn follow(&self, from: u64, mut take: impl FnMut(Vec<Event>)) -> FeedError {
        match self.open(format!("{}/events?from={from}", self.base)).await {
            Err(error) => error,
            Ok(answer) => match lines(answer, &mut take).await {
                Err(error) => error,
                Ok(()) => FeedError::Ended,
            },
        }
    }

    /// Reads the events `from..=to`.
    ///
    /// # Errors
    /// See [`FeedError`].
    pub async fn range(&self, from: u64, to: u64) -> Result<Vec<Event>, FeedError> {
        let mut all = Vec::new();
        let answer = self.open(format!("{}/events?from={from}&to={to}", self.base)).await?;
        lines(answer, &mut |events| all.extend(events)).await?;
        Ok(all)
    }

    async fn open(&self, url: String) -> Result<Response, FeedError> {
        let answer = self.http.get(url).send().await?;
        if answer.status() == StatusCode::GONE {
            return Err(FeedError::Gone(answer.json::<Gone>().await?));
        }
        Ok(answer.error_for_status()?)
    }
}

/// Cuts an NDJSON body into events. The end of a chunk is not the end of a line.
async fn lines(answer: Response, take: &mut impl FnMut(Vec<Event>)) -> Result<(), FeedError> {
    let mut chunks = answer.bytes_stream();
    let mut rest: Vec<u8> = Vec::new();
    while let Some(chunk) = chunks.next().await {
        rest.extend_from_slice(&chunk?);
        let Some(end) = rest.iter().rposition(|b| *b == b'\n') else { continue };
        let tail = rest.split_off(end + 1);
        let events = rest
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice)
            .collect::<Result<Vec<Event>, _>>()?;
        rest = tail;
        take(events);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_reader_resumes_where_the_first_was_cut_off() {
        let feed = Feed::new(100);
        let addr = serve(feed.clone(), Directory::default()).await.unwrap();
        let upstream = Upstream::new(addr, reqwest::Client::new());
        for _ in 0..5 {
            feed.emit("an event".to_owned());
        }
        assert_eq!(upstream.range(1, 3).await.unwrap().len(), 3);

        let (sender, mut got) = tokio::sync::mpsc::unbounded_channel();
        let reading = tokio::spawn(async move {
            upstream
                .follow(4, |events| {
                    events.into_iter().for_each(|e| sender.send(e.seq).unwrap());
                })
                .await
        });
        assert_eq!((got.recv().await, got.recv().await), (Some(4), Some(5)));
        feed.emit("an event".to_owned());
        assert_eq!(got.recv().await, Some(6), "and then follows what comes");
        reading.abort();
    }

    #[tokio::test]
    async fn a_reader_that_comes_too_late_is_told() {
        let feed = Feed::new(2);
        for _ in 0..5 {
            feed.emit("an event".to_owned());
        }
        let addr = serve(feed, Directory::default()).await.unwrap();
        let upstream = Upstream::new(addr, reqwest::Client::new());
        let error = upstream.range(1, 5).await.unwrap_err();
        assert!(matches!(error, FeedError::Gone(Gone { oldest: 4 })), "{error}");
    }
}
