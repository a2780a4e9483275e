//! Ending in order when the process is told to.

use crate::node::{Node, Stopped};
use std::{io, time::Duration};

/// Waits for SIGTERM or SIGINT, then [shuts the node down](Node::shutdown) within the given time.
///
/// Telemetry, if there is any, is flushed after this: leases first.
///
/// # Errors
/// If the signal handlers cannot be installed. Then nothing was awaited, and the node runs on.
pub async fn on_signal(node: &Node, within: Duration) -> io::Result<Stopped> {
    signalled().await?;
    Ok(node.shutdown(within).await)
}

/// Waits for SIGTERM or SIGINT (elsewhere than on Unix: for Ctrl-C).
///
/// # Errors
/// If the signal handlers cannot be installed.
pub async fn signalled() -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        Ok(())
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
