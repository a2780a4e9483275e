//! A connection over which requests go: to one server, or to a Cluster.

use super::cluster;
use crate::{
    config::{Config, Wait},
    error::Fault,
    keys,
    script::Call,
};
use futures_util::future::join_all;
use redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, RedisError, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::ClusterConnection,
    cluster_routing::{Route as SlotRoute, RoutingInfo, SingleNodeRoutingInfo, SlotAddr},
};

/// A connection. Clones share it; it ends with the last of them.
#[derive(Clone)]
pub(super) enum Way {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Way {
    /// Connects to one server.
    pub(super) async fn to(client: &Client, config: &Config) -> Result<Self, Fault> {
        let patience = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(config.connect_timeout))
            .set_response_timeout(Some(config.response_timeout));
        let connecting = client.get_multiplexed_async_connection_with_config(&patience);
        // The client's own limit does not cover the greeting of a server that accepts and says nothing.
        match tokio::time::timeout(config.connect_timeout * 2, connecting).await {
            Ok(connection) => Ok(Self::Server(greeted(connection?).await?)),
            Err(_) => Err(Fault::Silence(config.connect_timeout * 2)),
        }
    }

    pub(super) const fn is_to_a_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Asks for a sign of life; in a Cluster of the server that has a slot, or of none.
    pub(super) async fn ping(&mut self, slot: Option<u16>) -> Result<(), RedisError> {
        let ping = redis::cmd("PING");
        match (self, slot) {
            (Self::Server(connection), _) => connection.req_packed_command(&ping).await?.extract_error()?,
            (Self::Cluster(connection), Some(slot)) => connection
                .route_command(ping, RoutingInfo::SingleNode(server_of(slot)))
                .await?
                .extract_error()?,
            (Self::Cluster(_), None) => return Ok(()),
        };
        Ok(())
    }

    pub(super) async fn ask(&mut self, cmd: &Cmd) -> Result<Value, RedisError> {
        match self {
            Self::Server(connection) => connection.req_packed_command(cmd).await?.extract_error(),
            Self::Cluster(connection) => cluster::ask(connection, cmd).await,
        }
    }

    /// Sends scripts together: an answer or an error for each. Fails as a whole if the one connection does.
    pub(super) async fn pipeline(
        &mut self,
        calls: &[Call],
    ) -> Result<Vec<Result<Value, RedisError>>, RedisError> {
        match self {
            Self::Server(connection) => {
                let mut pipeline = Pipeline::with_capacity(calls.len());
                for call in calls {
                    pipeline.add_command(call.short().clone());
                }
                let values = connection.req_packed_commands(&pipeline, 0, calls.len()).await?;
                Ok(values.into_iter().map(Value::extract_error).collect())
            }
            // Its connections to the servers gather what is sent at the same time. What one of them does not answer says
            // nothing of the others.
            Self::Cluster(connection) => {
                let answers = calls.iter().map(|call| {
                    let mut connection = connection.clone();
                    async move { cluster::ask(&mut connection, call.short()).await }
                });
                Ok(join_all(answers).await)
            }
        }
    }

    /// Runs a script, then has the connection wait for replicas: the answer, and how many have what was written before.
    pub(super) async fn run_then_wait(
        &mut self,
        call: &Call,
        wait: Wait,
    ) -> Result<(Value, Result<u64, RedisError>), RedisError> {
        let mut pipeline = Pipeline::with_capacity(2);
        // The whole text: a script that is missing must not leave a WAIT for nothing behind it.
        pipeline.add_command(call.full());
        let millis = u64::try_from(wait.timeout.as_millis()).unwrap_or(u64::MAX);
        pipeline.cmd("WAIT").arg(wait.replicas).arg(millis);
        let mut values = match self {
            Self::Server(connection) => {
                connection.set_response_timeout(wait.timeout + std::time::Duration::from_secs(1));
                connection.req_packed_commands(&pipeline, 0, 2).await?
            }
            Self::Cluster(connection) => {
                connection.route_pipeline(pipeline, 0, 2, server_of(keys::slot(call.first_key()))).await?
            }
        };
        let acked = values.pop().unwrap_or(Value::Nil).extract_error();
        let value = values.pop().unwrap_or(Value::Nil).extract_error()?;
        // Without the right to wait the script has run all the same.
        Ok((value, acked.and_then(|acked| Ok(u64::from_redis_value(acked)?))))
    }
}

fn server_of(slot: u16) -> SingleNodeRoutingInfo {
    SingleNodeRoutingInfo::SpecificNode(SlotRoute::new(slot, SlotAddr::Master))
}

/// A server that lets us in. To connect is no proof: some ask nothing before the first request, and answer nothing.
async fn greeted(mut connection: MultiplexedConnection) -> Result<MultiplexedConnection, RedisError> {
    match connection.req_packed_command(&redis::cmd("PING")).await?.extract_error() {
        // One who may not ask was answered.
        Err(error) if error.code() != Some("NOPERM") => return Err(error),
        _ => {}
    }
    // For operators who look at `CLIENT LIST`. A server that does not allow it is fine, too.
    let name = redis::cmd("CLIENT").arg("SETNAME").arg("leasehold").to_owned();
    if let Err(error) = connection.req_packed_command(&name).await {
        tracing::debug!(%error, "the connection has no name");
    }
    Ok(connection)
}

/// All keys of a pattern on one server.
pub(super) async fn scan(way: &mut Way, pattern: &str, step: usize) -> Result<Vec<Vec<u8>>, RedisError> {
    let mut keys = Vec::new();
    let mut cursor = 0_u64;
    loop {
        let answer =
            way.ask(redis::cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(step)).await?;
        let (next, found) = <(u64, Vec<Vec<u8>>)>::from_redis_value(answer)?;
        keys.extend(found);
        if next == 0 {
            return Ok(keys);
        }
        cursor = next;
    }
}
