//! Who reads the cache all the time, and remembers.

use super::CACHE;
use leasehold::BoxError;
use redis::aio::MultiplexedConnection;
use std::time::Duration;
use tokio::task::JoinHandle;

/// What a reader has seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// How often it looked and found something.
    pub reads: u64,
    /// The last version: fence, and refresh under it.
    pub last: (u64, u64),
    /// How often a version was older than one seen before.
    pub went_back: u64,
}

/// A reader at work.
#[derive(Debug)]
pub struct Reader {
    task: JoinHandle<Result<Seen, redis::RedisError>>,
    stop: tokio::sync::oneshot::Sender<()>,
}

impl Reader {
    /// Begins to read at `url`.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn start(url: &str) -> Result<Self, BoxError> {
        let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        Ok(Self { task: tokio::spawn(read(connection, stopped)), stop })
    }

    /// Stops, and says what was seen.
    ///
    /// # Errors
    /// If the server failed meanwhile.
    pub async fn end(self) -> Result<Seen, BoxError> {
        // A reader that failed has ended already, and says why.
        let _ = self.stop.send(());
        Ok(self.task.await??)
    }
}

async fn read(
    mut connection: MultiplexedConnection,
    mut stopped: tokio::sync::oneshot::Receiver<()>,
) -> Result<Seen, redis::RedisError> {
    let mut seen = Seen::default();
    while stopped.try_recv().is_err() {
        let value: Option<String> = redis::cmd("GET").arg(CACHE).query_async(&mut connection).await?;
        if let Some(version) = value.as_deref().and_then(parse) {
            seen.reads += 1;
            seen.went_back += u64::from(version < seen.last);
            seen.last = seen.last.max(version);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(seen)
}

fn parse(value: &str) -> Option<(u64, u64)> {
    let (fence, version) = value.split_once(' ')?;
    Some((fence.parse().ok()?, version.parse().ok()?))
}
