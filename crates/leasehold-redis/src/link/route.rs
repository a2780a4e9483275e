//! Finds the servers in charge, and makes ways to them.

use super::way::Way;
use crate::{
    config::{Config, Login, Node, Target},
    error::Fault,
};
use futures_util::future::select_ok;
use leasehold_core::StoreErrorKind;
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, FromRedisValue, IntoConnectionInfo,
    ProtocolVersion, RedisConnectionInfo, RedisError, TlsCertificates, TlsMode, Value,
    cluster::ClusterClient,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use std::{collections::BTreeSet, ops::RangeInclusive, time::Duration};

/// How the servers in charge are found.
pub(super) enum Route {
    /// They do not move.
    Fixed(Box<Client>),
    /// The sentinels know. All are asked, anew for each connection: one that says nothing keeps nobody waiting.
    Sentinels(Vec<tokio::sync::Mutex<SentinelClient>>),
    /// They know each other.
    Cluster(Box<ClusterClient>),
}

impl Route {
    pub(super) fn new(config: &Config) -> Result<Self, Fault> {
        if config.tls.is_some() && rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another one may be installed by now, by another thread, and does as well.
            rustls::crypto::ring::default_provider().install_default().ok();
        }
        Ok(match &config.target {
            Target::Server(node) => Self::Fixed(client(address(node, config), config)?.into()),
            Target::Socket(path) => {
                Self::Fixed(client(ConnectionAddr::Unix((&**path).into()), config)?.into())
            }
            Target::Sentinel { sentinels, master, login } => {
                let each = sentinels.iter().map(|node| Ok(sentinel(node, master, login, config)?.into()));
                Self::Sentinels(each.collect::<Result<_, Fault>>()?)
            }
            Target::Cluster(nodes) => Self::Cluster(cluster(nodes, config)?.into()),
        })
    }

    /// A way to whoever is in charge now.
    pub(super) async fn connect(&self, config: &Config) -> Result<Way, Fault> {
        match self {
            Self::Fixed(client) => Way::to(client, config).await,
            Self::Sentinels(_) => Way::to(&self.primary(config).await?, config).await,
            Self::Cluster(client) => {
                let connection = bounded(config.connect_timeout * 3, client.get_async_connection()).await?;
                Ok(Way::Cluster(connection))
            }
        }
    }

    /// The one server in charge.
    pub(super) async fn primary(&self, config: &Config) -> Result<Client, Fault> {
        match self {
            Self::Fixed(client) => Ok(Client::clone(client)),
            Self::Sentinels(sentinels) => {
                let each = sentinels
                    .iter()
                    .map(|sentinel| Box::pin(async { sentinel.lock().await.async_get_client().await }));
                let first = async { Ok(select_ok(each).await?.0) };
                bounded(config.connect_timeout * 3, first).await
            }
            // There are several: see `Link::primaries`.
            Self::Cluster(_) => Err(StoreErrorKind::Unreachable.into()),
        }
    }
}

/// Who has which slots of a Cluster, from `CLUSTER SLOTS`.
pub(super) fn shards(slots: &Value) -> Result<Vec<(RangeInclusive<u16>, Node)>, Fault> {
    let mut shards = Vec::new();
    for range in Vec::<Vec<Value>>::from_redis_value(slots.clone()).map_err(RedisError::from)? {
        let [first, last, Value::Array(primary), ..] = range.as_slice() else { continue };
        let [host, port, ..] = primary.as_slice() else { continue };
        let number = |value: &Value| u16::from_redis_value(value.clone()).map_err(RedisError::from);
        let host = String::from_redis_value(host.clone()).map_err(RedisError::from)?;
        shards.push((number(first)?..=number(last)?, Node { host, port: number(port)? }));
    }
    Ok(shards)
}

/// The primaries of a Cluster, from `CLUSTER SLOTS`.
pub(super) fn primaries(slots: &Value, config: &Config) -> Result<Vec<Client>, Fault> {
    let nodes: BTreeSet<Node> = shards(slots)?.into_iter().map(|(_, node)| node).collect();
    nodes.iter().map(|node| to(node, config)).collect()
}

/// A way to one server by its address.
pub(super) fn to(node: &Node, config: &Config) -> Result<Client, Fault> {
    client(address(node, config), config)
}

async fn bounded<T>(within: Duration, work: impl Future<Output = Result<T, RedisError>>) -> Result<T, Fault> {
    match tokio::time::timeout(within, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Fault::Silence(within)),
    }
}

fn address(node: &Node, config: &Config) -> ConnectionAddr {
    let (host, port) = (node.host.clone(), node.port);
    match &config.tls {
        Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        None => ConnectionAddr::Tcp(host, port),
    }
}

fn settings(config: &Config) -> RedisConnectionInfo {
    let mut settings = RedisConnectionInfo::default()
        .set_db(config.database)
        .set_protocol(protocol(config))
        // A narrow ACL need not allow what is for statistics only.
        .set_skip_set_lib_name();
    if let Some(user) = &config.login.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &config.login.password {
        settings = settings.set_password(password.reveal());
    }
    settings
}

const fn protocol(config: &Config) -> ProtocolVersion {
    if config.resp3 { ProtocolVersion::RESP3 } else { ProtocolVersion::RESP2 }
}

fn certificates(config: &Config) -> Option<TlsCertificates> {
    let tls = config.tls.as_ref()?;
    let client_tls = tls.client.as_ref().map(|(cert, key)| ClientTlsConfig {
        client_cert: cert.clone(),
        client_key: key.reveal().as_bytes().to_vec(),
    });
    Some(TlsCertificates { client_tls, root_cert: tls.ca.clone() })
}

fn info(address: ConnectionAddr, config: &Config) -> Result<ConnectionInfo, Fault> {
    Ok(address.into_connection_info()?.set_redis_settings(settings(config)))
}

fn client(address: ConnectionAddr, config: &Config) -> Result<Client, Fault> {
    let info = info(address, config)?;
    Ok(match certificates(config) {
        Some(certificates) => Client::build_with_tls(info, certificates)?,
        None => Client::open(info)?,
    })
}

fn sentinel(node: &Node, master: &str, login: &Login, config: &Config) -> Result<SentinelClient, Fault> {
    let mut builder =
        SentinelClientBuilder::new([address(node, config)], master, SentinelServerType::Master)?
            .set_client_to_redis_db(config.database)
            .set_client_to_redis_protocol(protocol(config));
    if let Some(user) = &config.login.user {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = &config.login.password {
        builder = builder.set_client_to_redis_password(password.reveal());
    }
    if let Some(user) = &login.user {
        builder = builder.set_client_to_sentinel_username(user);
    }
    if let Some(password) = &login.password {
        builder = builder.set_client_to_sentinel_password(password.reveal());
    }
    if let Some(certificates) = certificates(config) {
        builder = builder
            .set_client_to_redis_tls_mode(TlsMode::Secure)
            .set_client_to_redis_certificates(certificates.clone())
            .set_client_to_sentinel_tls_mode(TlsMode::Secure)
            .set_client_to_sentinel_certificates(certificates);
    }
    Ok(builder.build()?)
}

fn cluster(nodes: &[Node], config: &Config) -> Result<ClusterClient, Fault> {
    let nodes =
        nodes.iter().map(|node| info(address(node, config), config)).collect::<Result<Vec<_>, _>>()?;
    let mut builder = ClusterClient::builder(nodes)
        .use_protocol(protocol(config))
        .connection_timeout(config.connect_timeout)
        .response_timeout(config.response_timeout)
        // See `super::cluster`.
        .retries(0);
    if let Some(certificates) = certificates(config) {
        builder = builder.tls(TlsMode::Secure).certs(certificates);
    }
    Ok(builder.build()?)
}
