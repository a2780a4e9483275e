//! Asks the server that is in charge now.

use crate::{
    config::Config,
    error::{Failure, Fault},
    keys::Keys,
    script::Call,
};
use redis::{Cmd, Value, aio::MultiplexedConnection};
use std::sync::Arc;

/// The way to the servers of one store. Shared; every method may be called by many tasks at once, and every future
/// may be dropped.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    connection: MultiplexedConnection,
    config: Config,
    keys: Keys,
    address: Arc<str>,
}

impl Link {
    /// Connects.
    pub(crate) async fn open(config: &Config) -> Result<Self, Fault> {
        let connection = config.client.get_multiplexed_async_connection().await?;
        let address = "redis://…".into();
        Ok(Self { connection, config: config.clone(), keys: Keys::new(&*config.prefix), address })
    }

    /// The store's address without secrets.
    pub(crate) const fn address(&self) -> &Arc<str> {
        &self.address
    }

    pub(crate) const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Runs one script. An error reply of the script is a [`Failure`] with nothing done.
    pub(crate) async fn call(&self, call: &Call) -> Result<Value, Failure> {
        let mut connection = self.connection.clone();
        match call.short().query_async(&mut connection).await {
            Err(error) if error.kind() == redis::ServerErrorKind::NoScript.into() => {
                Ok(call.full().query_async(&mut connection).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Runs many scripts, in one round trip to each server that is concerned; the answers are in the order of the
    /// calls. Each is atomic for itself.
    pub(crate) async fn calls(&self, calls: &[Call]) -> Vec<Result<Value, Failure>> {
        futures_util::future::join_all(calls.iter().map(|call| self.call(call))).await
    }

    /// Runs a command that changes nothing.
    pub(crate) async fn ask(&self, cmd: &Cmd) -> Result<Value, Failure> {
        Ok(cmd.query_async(&mut self.connection.clone()).await?)
    }

    /// Runs a command that changes nothing on every server in charge: one, or in a Cluster all primaries.
    pub(crate) async fn ask_each(&self, cmd: &Cmd) -> Result<Vec<Value>, Failure> {
        Ok(vec![self.ask(cmd).await?])
    }

    /// A connection of its own for what is heard, to a server in charge; ends when that server or the way to it does.
    pub(crate) async fn ear(&self) -> Result<redis::aio::PubSub, Fault> {
        Ok(self.config.client.get_async_pubsub().await?)
    }
}
