//! Carries deliveries to the gates of replicas.

use super::{
    endpoint::{Delivery, FENCE_TOKEN, Receipt, Refusal},
    event::Event,
    report::{Report, report},
};
use leasehold::{Fence, Permit};
use reqwest::StatusCode;
use std::{net::SocketAddr, time::Duration};

/// Carries for one replica, whenever it leads.
#[derive(Debug, Clone)]
pub struct Courier {
    from: String,
    http: reqwest::Client,
}

/// How a delivery went.
#[derive(Debug)]
pub enum Answer {
    /// The replica's stream now ends at this event.
    Received(u64),
    /// The gate refused the fence: the term is over, whatever the leader believes.
    TurnedAway(Refusal),
    /// Perhaps it arrived, perhaps not. Asking the replica where it is settles it.
    Failed(reqwest::Error),
}

/// Longer than any answer of a replica that runs, short enough that a frozen one holds nothing up.
const PATIENCE: Duration = Duration::from_millis(400);

impl Courier {
    /// A courier in the service of `from`.
    #[must_use]
    pub const fn new(from: String, http: reqwest::Client) -> Self {
        Self { from, http }
    }

    /// Delivers `events` to the replica `to`; none at all only asks where it is, and shuts out earlier terms.
    ///
    /// With the permit goes its fence. The request runs as a task of its own and to its end, even if the caller is dropped: bytes that are under way
    /// cannot be called back, so it is better to learn what became of them.
    pub async fn deliver(&self, permit: Permit, to: &str, addr: SocketAddr, events: Vec<Event>) -> Answer {
        let (to, courier) = (to.to_owned(), self.clone());
        let sending = tokio::spawn(async move {
            let answer = courier.send(permit.fence(), addr, events).await.unwrap_or_else(Answer::Failed);
            if let Answer::TurnedAway(Refusal { presented, highest }) = answer {
                report(Report::TurnedAway { to, presented, highest });
            }
            answer
        });
        match sending.await {
            Ok(answer) => answer,
            Err(end) => match end.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down, and this future with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    async fn send(&self, fence: Fence, addr: SocketAddr, events: Vec<Event>) -> reqwest::Result<Answer> {
        let answer = self
            .http
            .post(format!("http://{addr}/deliver"))
            .header(FENCE_TOKEN, fence.get())
            .timeout(PATIENCE)
            .json(&Delivery { from: self.from.clone(), events })
            .send()
            .await?;
        if answer.status() == StatusCode::CONFLICT {
            return Ok(Answer::TurnedAway(answer.json().await?));
        }
        let receipt: Receipt = answer.error_for_status()?.json().await?;
        Ok(Answer::Received(receipt.last))
    }
}
