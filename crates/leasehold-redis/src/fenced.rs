//! Writes to Redis behind a fence: the write and the check of its token are one step.
//!
//! ```no_run
//! # async fn example(fence: leasehold_core::Fence) -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold_redis::Fenced;
//!
//! let connection = redis::Client::open("redis://127.0.0.1")?.get_multiplexed_async_connection().await?;
//! // One mark for all that one duty writes. The braces put it into the slot of the data, which a Cluster needs.
//! let prices = Fenced::new(connection, "{prices}:fence");
//! prices.set(fence, "{prices}:all", "…").await?; // Err(FencedError::Stale(_)) after a successor has written
//! # Ok(())
//! # }
//! ```
//!
//! Whoever is told `Stale` has lost its lease without knowing it yet: pass it to `Term::outranked`, which ends the term and
//! has the next one begin above that token.
//!
//! It does not matter where the lease is kept, only that all who write under it use the same mark. Guaranteed: a write under
//! a lower token than one that was accepted is refused, whatever the clocks of its writer say. Not guaranteed: anything
//! after the mark was lost (`FLUSHALL`, eviction, a failover to a replica that had not got it): the next write is then
//! accepted under any token, and raises the mark anew.

mod error;
mod script;

pub use error::FencedError;
pub use script::FencedScript;

use leasehold_core::Fence;
use redis::{Cmd, ToRedisArgs, Value, aio::ConnectionLike};
use std::time::Duration;

/// Data in Redis that is written under one lease.
///
/// `C` is a connection of the user's own: a `MultiplexedConnection`, a `ConnectionManager` or a `ClusterConnection`. Every
/// method needs it only for one command. Cheap to clone if the connection is.
#[derive(Debug, Clone)]
pub struct Fenced<C> {
    connection: C,
    mark: String,
    max_jump: Option<u64>,
}

impl<C: ConnectionLike + Clone + Send + Sync> Fenced<C> {
    /// Data whose highest accepted token is kept at the key `mark`. In a Cluster it shares the slot of the data.
    #[must_use]
    pub fn new(connection: C, mark: impl Into<String>) -> Self {
        Self { connection, mark: mark.into(), max_jump: None }
    }

    /// Refuses a token that is more than `max_jump` above the mark, so that one absurd number does not shut everyone else
    /// out for good. The first token is taken as it is. Default: no limit.
    #[must_use]
    pub fn with_max_jump(self, max_jump: u64) -> Self {
        Self { max_jump: Some(max_jump), ..self }
    }

    /// Sets a string.
    ///
    /// # Errors
    /// [`FencedError`]; of a `Stale` nothing was written.
    pub async fn set(
        &self,
        fence: Fence,
        key: impl ToRedisArgs,
        value: impl ToRedisArgs,
    ) -> Result<(), FencedError> {
        self.one(fence, "SET", key, |cmd| cmd.arg(value)).await.map(drop)
    }

    /// Sets a string that expires after `ttl`, at least 1 ms.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub async fn set_for(
        &self,
        fence: Fence,
        key: impl ToRedisArgs,
        value: impl ToRedisArgs,
        ttl: Duration,
    ) -> Result<(), FencedError> {
        let millis = crate::acquire::millis(ttl).max(1);
        self.one(fence, "SET", key, |cmd| cmd.arg(value).arg("PX").arg(millis)).await.map(drop)
    }

    /// Removes a key; false if it was not there.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub async fn delete(&self, fence: Fence, key: impl ToRedisArgs) -> Result<bool, FencedError> {
        Ok(self.one(fence, "DEL", key, |cmd| cmd).await? == Value::Int(1))
    }

    /// Sets a field of a hash.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub async fn hash_set(
        &self,
        fence: Fence,
        key: impl ToRedisArgs,
        field: impl ToRedisArgs,
        value: impl ToRedisArgs,
    ) -> Result<(), FencedError> {
        self.one(fence, "HSET", key, |cmd| cmd.arg(field).arg(value)).await.map(drop)
    }

    /// Removes a field of a hash; false if it was not there.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub async fn hash_delete(
        &self,
        fence: Fence,
        key: impl ToRedisArgs,
        field: impl ToRedisArgs,
    ) -> Result<bool, FencedError> {
        Ok(self.one(fence, "HDEL", key, |cmd| cmd.arg(field)).await? == Value::Int(1))
    }

    /// Appends to a list.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub async fn list_push(
        &self,
        fence: Fence,
        key: impl ToRedisArgs,
        value: impl ToRedisArgs,
    ) -> Result<(), FencedError> {
        self.one(fence, "RPUSH", key, |cmd| cmd.arg(value)).await.map(drop)
    }

    /// Appends an entry of fields and values to a stream, and tells its id.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub async fn stream_add<F: ToRedisArgs, V: ToRedisArgs>(
        &self,
        fence: Fence,
        key: impl ToRedisArgs,
        fields: &[(F, V)],
    ) -> Result<String, FencedError> {
        let add = |cmd: &mut Cmd| {
            cmd.arg("*");
            for (field, value) in fields {
                cmd.arg(field).arg(value);
            }
        };
        let id = self.one(fence, "XADD", key, |cmd| {
            add(cmd);
            cmd
        });
        redis::from_redis_value(id.await?).map_err(|error| FencedError::Redis(error.into()))
    }

    /// Runs a script of the user's own, if the token is not stale.
    ///
    /// # Errors
    /// As [`Self::set`]. A script that fails half-way leaves what it had written: Redis takes nothing back. The mark is
    /// raised before it begins, so that no older write can follow.
    pub async fn run(
        &self,
        fence: Fence,
        script: &FencedScript,
        keys: &[impl ToRedisArgs],
        args: &[impl ToRedisArgs],
    ) -> Result<Value, FencedError> {
        let mut call = script.begin(&self.mark, keys);
        self.head(&mut call, fence);
        for arg in args {
            call.arg(arg);
        }
        self.sent(fence, script, call).await
    }

    async fn one(
        &self,
        fence: Fence,
        command: &str,
        key: impl ToRedisArgs,
        words: impl FnOnce(&mut Cmd) -> &mut Cmd,
    ) -> Result<Value, FencedError> {
        let script = script::one_command();
        let mut call = script.begin(&self.mark, &[key]);
        self.head(&mut call, fence);
        words(call.arg(command));
        self.sent(fence, script, call).await
    }

    fn head(&self, call: &mut Cmd, fence: Fence) {
        call.arg(fence.get()).arg(self.max_jump.map_or_else(String::new, |jump| jump.to_string()));
    }

    async fn sent(&self, fence: Fence, script: &FencedScript, call: Cmd) -> Result<Value, FencedError> {
        let answer = script.send(&mut self.connection.clone(), call).await?;
        error::read(answer, fence, &self.mark, self.max_jump)
    }
}
