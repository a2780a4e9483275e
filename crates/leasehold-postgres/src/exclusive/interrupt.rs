//! Ending a statement whose caller has gone.

use std::{fmt, pin::Pin, sync::Arc};
use tokio_postgres::{CancelToken, Client, Socket, tls::MakeTlsConnect};

type Cancelling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How to end a statement that still runs when its caller has gone: by a cancel request, which needs a connection of its own,
/// and so the TLS of the first.
///
/// Without it, a dropped future leaves the connection busy until its statement ends by itself: at the latest after the wait for
/// the lock, or the server's `statement_timeout`. With it, the statement ends at once.
///
/// A cancel request names the session, not the statement. It is sent only if the future was dropped, but one that arrives late may
/// end a statement that was sent on the same client right after the drop; that one fails with SQLSTATE 57014, and can
/// be repeated. Nothing is ever committed by halves.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn(CancelToken) -> Cancelling + Send + Sync>);

impl Interrupt {
    /// With the same `tls` that the client was connected with, such as [`tokio_postgres::NoTls`].
    #[must_use]
    pub fn by<M>(tls: M) -> Self
    where
        M: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        M::Stream: Send,
        M::TlsConnect: Send,
        <M::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
    {
        Self(Arc::new(move |token| {
            let tls = tls.clone();
            Box::pin(async move {
                // If the server cannot be reached, the statement has the time that the server gives it.
                let _ = token.cancel_query(tls).await;
            })
        }))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

/// Interrupts when it is dropped, unless all is done.
pub(super) struct Interrupting(Option<(Interrupt, CancelToken)>);

impl Interrupting {
    pub(super) fn begin(interrupt: Option<&Interrupt>, client: &Client) -> Self {
        Self(interrupt.map(|interrupt| (interrupt.clone(), client.cancel_token())))
    }

    pub(super) fn done(&mut self) {
        self.0 = None;
    }
}

impl Drop for Interrupting {
    fn drop(&mut self) {
        let Some((Interrupt(cancel), token)) = self.0.take() else { return };
        // A panic is not in a statement: the cancel request could only hit a later one.
        if std::thread::panicking() {
            return;
        }
        // Outside a runtime nobody could send it, nor drive the connection.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(cancel(token)));
        }
    }
}
