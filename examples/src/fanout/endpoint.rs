//! A replica's HTTP server: `POST /deliver` for the leader, `GET /ws?after=N` for clients.

use super::{
    event::Event,
    gate::{Gate, Verdict},
    report::{Report, report},
};
use axum::{
    Json, Router,
    extract::{
        Query, State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use leasehold::Fence;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The request header that carries the fence of a delivery.
pub const FENCE_TOKEN: &str = "fence-token";

/// The gate of this replica, and a bell for those who wait for its next event.
#[derive(Debug, Clone)]
pub struct Endpoint {
    // Held for one delivery, whose only wait is a short append to a file: an async lock would buy nothing.
    gate: Arc<Mutex<Gate>>,
    last: Arc<watch::Sender<u64>>,
}

/// The body of a delivery.
#[derive(Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// The replica that leads.
    pub from: String,
    /// Events in order.
    pub events: Vec<Event>,
}

/// The body of `200 OK`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Receipt {
    /// The last event of the stream.
    pub last: u64,
}

/// The body of `409 Conflict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The fence of the delivery.
    #[serde(with = "super::event::number")]
    pub presented: Fence,
    /// The highest fence that was accepted.
    #[serde(with = "super::event::number")]
    pub highest: Fence,
}

#[derive(Debug, Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

impl Endpoint {
    /// The endpoint in front of `gate`.
    #[must_use]
    pub fn new(gate: Gate) -> Self {
        let last = Arc::new(watch::Sender::new(gate.last()));
        Self { gate: Arc::new(Mutex::new(gate)), last }
    }

    /// Its routes.
    pub fn router(self) -> Router {
        Router::new().route("/deliver", post(deliver)).route("/ws", get(subscribe)).with_state(self)
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        // `deliver` changes the gate's memory only after all that could fail, so a poisoned gate is still right.
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn deliver(State(to): State<Endpoint>, head: HeaderMap, Json(delivery): Json<Delivery>) -> Response {
    let token = head.get(FENCE_TOKEN).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    let Some(fence) = token.and_then(|n| Fence::new(n).ok()) else {
        // A write without a fence is not a weaker write: it is refused.
        return (StatusCode::PRECONDITION_REQUIRED, "a delivery needs a Fence-Token header\n")
            .into_response();
    };
    let Delivery { from, events } = delivery;
    let seq = events.first().map_or(0, |e| e.seq);
    let verdict = to.gate().deliver(fence, events);
    match verdict {
        Ok(Verdict::Accepted { last, applied, raised }) => {
            if raised {
                report(Report::Raised { fence, last });
            }
            if applied > 0 {
                to.last.send_replace(last);
            }
            Json(Receipt { last }).into_response()
        }
        Ok(Verdict::Stale { presented, highest }) => {
            report(Report::Refused { presented, highest, from, seq });
            (StatusCode::CONFLICT, Json(Refusal { presented, highest })).into_response()
        }
        Err(error) => {
            // What reached the file is not known: only a restart, which reads it again, is safe.
            report(Report::Trouble { what: format!("the journal cannot be written: {error}") });
            std::process::exit(1)
        }
    }
}

async fn subscribe(
    State(from): State<Endpoint>,
    Query(query): Query<After>,
    up: WebSocketUpgrade,
) -> Response {
    up.on_upgrade(move |socket| feed_client(from, query.after, socket))
}

/// Sends everything after `seen`, then each event as it comes, until the client goes away.
async fn feed_client(from: Endpoint, mut seen: u64, mut socket: WebSocket) {
    let mut last = from.last.subscribe();
    loop {
        let news = from.gate().after(seen, 256).to_vec();
        for event in &news {
            // Three plain fields always have a JSON form.
            let Ok(text) = serde_json::to_string(event) else { return };
            if socket.send(Message::Text(text.into())).await.is_err() {
                return;
            }
            seen = event.seq;
        }
        tokio::select! {
            ring = last.wait_for(|last| *last > seen) => if ring.is_err() { return },
            // Reading is what notices a client that closed.
            message = socket.recv() => if !matches!(message, Some(Ok(_))) { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_stale_delivery_is_answered_409_with_both_fences_and_one_without_a_fence_428() {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/deliver", listener.local_addr().unwrap());
        let app = Endpoint::new(Gate::open(&dir.path().join("j")).unwrap()).router();
        tokio::spawn(async move { axum::serve(listener, app).await });

        let http = reqwest::Client::new();
        let post = |fence: Option<&'static str>| {
            let body = Delivery { from: "r1".to_owned(), events: vec![] };
            let head: HeaderMap =
                fence.into_iter().map(|f| (FENCE_TOKEN.parse().unwrap(), f.parse().unwrap())).collect();
            http.post(&url).headers(head).json(&body).send()
        };
        assert_eq!(post(Some("2")).await.unwrap().json::<Receipt>().await.unwrap().last, 0);
        let refused = post(Some("1")).await.unwrap();
        assert_eq!(refused.status(), 409);
        assert_eq!(refused.text().await.unwrap(), r#"{"presented":1,"highest":2}"#);
        for none in [None, Some("0"), Some("-1"), Some("9007199254740992"), Some("two")] {
            assert_eq!(post(none).await.unwrap().status(), 428, "{none:?}");
        }
    }
}
