//! Ending in order when the process is told to.

use crate::node::{Node, Stopped};
use std::{io, time::Duration};

/// Waits for SIGTERM or SIGINT, then [shuts the node down](Node::shutdown) within the given time.
///
/// The handlers are installed by the call, before the future is first polled: a signal that comes in between is not
/// missed. Until the call, a signal ends the process on the spot, so make it before work starts; or
/// [install](Signals::install) the handlers first of all.
///
/// Telemetry, if there is any, is flushed after this: leases first.
///
/// # Errors
/// If the signal handlers cannot be installed. Then nothing was awaited, and the node runs on.
///
/// # Panics
/// Outside a tokio runtime, or in one without I/O enabled.
pub fn on_signal(node: &Node, within: Duration) -> impl Future<Output = io::Result<Stopped>> + Send + use<> {
    let (signals, node) = (Signals::install(), node.clone());
    async move {
        signals?.wait().await;
        Ok(node.shutdown(within).await)
    }
}

/// Waits for SIGTERM or SIGINT (elsewhere than on Unix: for Ctrl-C). The handlers are installed by the call; in a loop
/// [install](Signals::install) them once, before it.
///
/// # Errors
/// If the signal handlers cannot be installed.
///
/// # Panics
/// As [`on_signal`].
pub fn signalled() -> impl Future<Output = io::Result<()>> + Send + use<> {
    let signals = Signals::install();
    async move {
        signals?.wait().await;
        Ok(())
    }
}

/// Handlers for SIGTERM and SIGINT (elsewhere than on Unix: for Ctrl-C), installed. A signal that comes while nobody
/// waits is remembered; several are remembered as one.
///
/// They stay installed for the life of the process, also when this is dropped: from then on such a signal does nothing.
#[derive(Debug)]
#[must_use = "once it is dropped, the signals are ignored"]
pub struct Signals {
    #[cfg(unix)]
    term: tokio::signal::unix::Signal,
    #[cfg(unix)]
    int: tokio::signal::unix::Signal,
    #[cfg(not(unix))]
    ctrl_c: tokio::signal::windows::CtrlC,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// If the operating system refuses.
    ///
    /// # Panics
    /// As [`on_signal`].
    pub fn install() -> io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
        }
        #[cfg(not(unix))]
        Ok(Self { ctrl_c: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for the next signal. Dropping the future loses none.
    pub async fn wait(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = self.ctrl_c.recv().await;
    }
}
