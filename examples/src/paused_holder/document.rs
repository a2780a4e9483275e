//! The protected resource: a document that is written over HTTP, and compares fences.
//!
//! `PUT /document` with a `Fence-Token` header: `200` if the token is at least as high as every one before, `409` if
//! not, `428` without one.

use super::said::Answer;
use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::put,
};
use leasehold::{Fence, Fenced, FencedError, Node, Permit, Stale};
use std::{error::Error, net::SocketAddr};
use tokio::net::TcpListener;

/// What was written, in order: the token, and by whom.
pub type Lines = Vec<(u64, String)>;

/// Serves a fresh document for the lease `lease` on a free port of the loopback interface, until the node ends.
///
/// # Errors
/// When the port cannot be bound, or the node was stopped.
pub async fn serve(
    node: &Node,
    lease: &str,
) -> Result<(SocketAddr, Fenced<Lines>), Box<dyn Error + Send + Sync>> {
    let document = node.fenced("document", lease, Lines::new()).await?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let addr = listener.local_addr()?;
    let app = Router::new().route("/document", put(write)).with_state(document.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok((addr, document))
}

async fn write(State(document): State<Fenced<Lines>>, head: HeaderMap, by: String) -> Response {
    let token = head.get("fence-token").and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    let Some(fence) = token.and_then(|n| Fence::new(n).ok()) else {
        return (StatusCode::PRECONDITION_REQUIRED, "a write needs a Fence-Token header\n").into_response();
    };
    match document.write(fence, move |lines| lines.push((fence.get(), by))).await {
        Ok(()) => Json(Answer::Accepted).into_response(),
        Err(FencedError::Stale(Stale { presented, highest })) => {
            let answer = Answer::Refused { presented: presented.get(), current: highest.get() };
            (StatusCode::CONFLICT, Json(answer)).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

/// Writes to the document at `addr`.
///
/// # Errors
/// When no answer came that says whether it was written.
pub async fn put_line(addr: SocketAddr, permit: Permit, by: &str) -> reqwest::Result<Answer> {
    let request = reqwest::Client::new().put(format!("http://{addr}/document"));
    let answer = request.header("fence-token", permit.fence().get()).body(by.to_owned()).send().await?;
    match answer.status() {
        StatusCode::CONFLICT => answer.json().await,
        _ => answer.error_for_status()?.json().await,
    }
}
