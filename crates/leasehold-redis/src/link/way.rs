//! A connection over which requests go: to one server, or to a Cluster.

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
    cluster_routing::{Route as SlotRoute, SingleNodeRoutingInfo, SlotAddr},
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

    pub(super) async fn ask(&mut self, cmd: &Cmd) -> Result<Value, RedisError> {
        match self {
            Self::Server(connection) => connection.req_packed_command(cmd).await?.extract_error(),
            Self::Cluster(connection) => connection.req_packed_command(cmd).await?.extract_error(),
        }
    }

    /// Sends scripts together; each answer may be an error of its own.
    pub(super) async fn pipeline(&mut self, calls: &[Call]) -> Result<Vec<Value>, RedisError> {
        match self {
            Self::Server(connection) => {
                let mut pipeline = Pipeline::with_capacity(calls.len());
                for call in calls {
                    pipeline.add_command(call.short().clone());
                }
                connection.req_packed_commands(&pipeline, 0, calls.len()).await
            }
            // Its connections to the servers gather what is sent at the same time.
            Self::Cluster(connection) => {
                let answers = calls.iter().map(|call| {
                    let mut connection = connection.clone();
                    async move {
                        match connection.req_packed_command(call.short()).await {
                            // An answer of one server says nothing of the others.
                            Err(error) => match error.clone().into_server_errors() {
                                Some(errors) if !errors.is_empty() => {
                                    Ok(Value::ServerError(errors[0].1.clone()))
                                }
                                _ => Err(error),
                            },
                            answer => answer,
                        }
                    }
                });
                join_all(answers).await.into_iter().collect()
            }
        }
    }

    pub(super) async fn run_then_wait(
        &mut self,
        call: &Call,
        wait: Wait,
    ) -> Result<(Value, u64), RedisError> {
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
                let slot = keys::slot(call.first_key());
                let node = SingleNodeRoutingInfo::SpecificNode(SlotRoute::new(slot, SlotAddr::Master));
                connection.route_pipeline(pipeline, 0, 2, node).await?
            }
        };
        let acked = values.pop().unwrap_or(Value::Nil).extract_error()?;
        let value = values.pop().unwrap_or(Value::Nil).extract_error()?;
        Ok((value, u64::from_redis_value(acked)?))
    }
}

/// A server that lets us in. To connect is no proof: some ask nothing before the first request, and answer nothing.
async fn greeted(mut connection: MultiplexedConnection) -> Result<MultiplexedConnection, RedisError> {
    connection.req_packed_command(&redis::cmd("PING")).await?.extract_error()?;
    // For operators who look at `CLIENT LIST`. A server that does not allow it is fine, too.
    let name = redis::cmd("CLIENT").arg("SETNAME").arg("leasehold").to_owned();
    if let Err(error) = connection.req_packed_command(&name).await {
        tracing::debug!(%error, "the connection has no name");
    }
    Ok(connection)
}

/// All keys of a pattern on one server.
pub(super) async fn scan(
    way: &mut Way,
    pattern: &str,
    step: usize,
    keys: &mut Vec<Vec<u8>>,
) -> Result<(), RedisError> {
    let mut cursor = 0_u64;
    loop {
        let answer =
            way.ask(redis::cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(step)).await?;
        let (next, found) = <(u64, Vec<Vec<u8>>)>::from_redis_value(answer)?;
        keys.extend(found);
        if next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}
