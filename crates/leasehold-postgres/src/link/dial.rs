//! Making a connection, in a task of its own: whoever asks may give up waiting, and the next one finds it made.

use super::{Shared, way::Way};
use crate::{config::Config, error::Fault};
use std::{sync::Arc, time::Duration};
use tokio::{
    runtime::Id,
    sync::watch,
    time::{sleep, timeout},
};
use tokio_postgres::{Client, Connection, Socket, config::Host, tls::MakeTlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

/// An attempt, and what came of it.
pub(super) type Dialling = watch::Receiver<Option<Result<Arc<Way>, Fault>>>;

/// The encrypted kind of stream.
type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// How long a connection may be idle before the system looks whether the other side is there, and how long it may be
/// silent then.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Begins an attempt on this runtime.
pub(super) fn dial(shared: Arc<Shared>, here: Id) -> Dialling {
    let (done, dialling) = watch::channel(None);
    tokio::spawn(async move {
        let pause = {
            let mut present = shared.present();
            (present.failures > 0).then(|| present.backoff.next_delay())
        };
        if let Some(pause) = pause {
            sleep(pause).await;
        }
        let made = made(&shared.config).await.map(Arc::new);
        let mut present = shared.present();
        match &made {
            Ok(way) => {
                present.failures = 0;
                present.backoff.reset();
                present.berth(here).ways.push(way.clone());
            }
            Err(_) => present.failures = present.failures.saturating_add(1),
        }
        present.berth(here).dialling = None;
        drop(present);
        done.send_replace(Some(made));
    });
    dialling
}

async fn made(config: &Config) -> Result<Way, Fault> {
    let (client, connection) = connect(config).await?;
    tokio::spawn(drive(connection));
    Ok(Way::new(client, config.response_timeout))
}

/// Serves a connection until it ends. Whoever asks on it is told why.
pub(crate) async fn drive(connection: Connection<Socket, Stream>) {
    if let Err(error) = connection.await {
        tracing::debug!(error = %Fault::from(error), "a connection ended");
    }
}

/// What the driver connects with.
pub(crate) fn prepared(
    config: &Config,
) -> Result<(tokio_postgres::Config, MakeRustlsConnect), leasehold_core::StoreErrorKind> {
    let tls = config.tls.connector()?;
    let mut server = config.server.clone();
    server.ssl_mode(config.tls.trust.mode());
    if server.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) && !server.get_hosts().is_empty() {
        // PostgreSQL does not encrypt its sockets.
        server.ssl_mode(tokio_postgres::config::SslMode::Disable);
    }
    server.connect_timeout(config.connect_timeout);
    server.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE / 4).keepalives_retries(3);
    server.tcp_user_timeout(KEEPALIVE);
    Ok((server, tls))
}

/// Connects, within the time for it.
pub(crate) async fn connect(config: &Config) -> Result<(Client, Connection<Socket, Stream>), Fault> {
    let (server, tls) = prepared(config)?;
    // One host that is silent must not use up the time of the others.
    let hosts = server.get_hosts().len().max(server.get_hostaddrs().len()).max(1);
    let patience = config.connect_timeout.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX));
    match timeout(patience, server.connect(tls)).await {
        Ok(made) => Ok(made?),
        Err(_) => Err(Fault::Silence(patience)),
    }
}
