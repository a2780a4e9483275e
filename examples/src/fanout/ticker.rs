//! What drives the feed: a price that takes a random walk, a hundred times a second.

use super::{event::Event, feed::Feed};
use std::time::Duration;
use tokio::{sync::oneshot, task::JoinHandle, time::interval};

/// Between two events.
pub const EVERY: Duration = Duration::from_millis(10);

/// A running ticker. Dropping it stops it.
#[derive(Debug)]
pub struct Ticker {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Vec<Event>>,
}

impl Ticker {
    /// Emits the first event now.
    #[must_use]
    pub fn start(feed: Feed) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let running = tokio::spawn(async move {
            let (mut price, mut emitted, mut beat) = (Price::default(), Vec::new(), interval(EVERY));
            loop {
                tokio::select! {
                    biased;
                    _ = &mut stopped => return emitted,
                    _ = beat.tick() => emitted.push(feed.emit(price.step())),
                }
            }
        });
        Self { stop, running }
    }

    /// Stops, and hands over everything that was emitted.
    pub async fn stop(self) -> Vec<Event> {
        let _ = self.stop.send(());
        // It neither panics nor is aborted.
        self.running.await.unwrap_or_default()
    }
}

/// A price in hundredths, and the state of a small generator that moves it.
struct Price(u64, u64);

impl Default for Price {
    fn default() -> Self {
        Self(10_000, 0x9e37_79b9_7f4a_7c15)
    }
}

impl Price {
    fn step(&mut self) -> String {
        // xorshift64: no more than a walk that looks like one.
        self.1 ^= self.1 << 13;
        self.1 ^= self.1 >> 7;
        self.1 ^= self.1 << 17;
        self.0 = (self.0 + self.1 % 21).saturating_sub(10).max(1);
        format!("ACME {}.{:02}", self.0 / 100, self.0 % 100)
    }
}
