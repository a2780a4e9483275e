//! Whether a connection is one session of the server, or a place in the queue of a pooler.

use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, Error, error::SqlState};

/// How often it is looked. Once is enough where nobody else uses the pooler; others may be in between.
const LOOKS: usize = 3;

/// Whether every statement of `ours` reaches the session that answered its first.
///
/// A pooler in transaction mode hands a session on as soon as its transaction ends. So `other` begins one just after a
/// statement of ours: it gets our session, or it holds another one back while our next statement asks for one; either
/// shows. On sessions of their own the two never meet.
///
/// `first` is the process that answered its first. `within` bounds each wait for a session.
pub(crate) async fn pinned(
    ours: &Client,
    first: i32,
    other: &Client,
    within: Duration,
) -> Result<bool, Error> {
    for _ in 0..LOOKS {
        if backend(ours).await? != first {
            return Ok(false);
        }
        // A pool of one session cannot give us another: it would have us wait for `other`, and `other` for us.
        let begun = timeout(within, async {
            other.batch_execute("BEGIN").await?;
            let theirs = backend(other).await?;
            Ok::<_, Error>((theirs, timeout(within / 2, backend(ours)).await))
        });
        let answer = begun.await;
        let ended = timeout(within, other.batch_execute("ROLLBACK")).await;
        match answer {
            // In statement mode PgBouncer lets nobody begin a transaction.
            Ok(Err(error)) if error.code() == Some(&SqlState::PROTOCOL_VIOLATION) => return Ok(false),
            Ok(Ok((theirs, Ok(Ok(mine))))) if mine == first && theirs != first => {}
            Ok(Err(error)) | Ok(Ok((_, Ok(Err(error))))) => return Err(error),
            // Another session, or none.
            _ => return Ok(false),
        }
        if !matches!(ended, Ok(Ok(()))) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The server's process that answers now.
pub(crate) async fn backend(client: &Client) -> Result<i32, Error> {
    let rows = client.query_typed("SELECT pg_backend_pid()", &[]).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0))
}
