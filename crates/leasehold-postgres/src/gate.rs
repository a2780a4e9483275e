//! Fence checks kept in the store, and the door that keeps writers apart.
//!
//! The door is an advisory lock of a transaction that does nothing else, on a connection of its own: whoever holds it has
//! it until its guard is dropped, or its process or the connection ends. A pooler that changes servers between
//! transactions is no hindrance.

use crate::{
    config::Config,
    error::{Failure, Fault},
    fields::{Fields, number, only},
    link::{Again, Link, connect, drive},
};
use leasehold_core::{Admit, Fence, GateGuard, LeaseName, ResourceName, Stale, StoreErrorKind};
use sha2::{Digest, Sha256};
use tokio::{runtime::Handle, time::timeout};
use tokio_postgres::{CancelToken, Client, types::Type};

pub(crate) async fn admit(
    link: &Link,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
) -> Result<Admit, Failure> {
    ask(link, resource, lease, fence, true).await
}

/// Waits for the door, then admits.
pub(crate) async fn hold(
    link: &Link,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
) -> Result<Result<GateGuard, Admit>, Failure> {
    // What was never issued gets no door, so that absurd requests leave nothing behind.
    match ask(link, resource, lease, fence, false).await? {
        Admit::Accepted => {}
        refusal => return Ok(Err(refusal)),
    }
    let door = shut(link.config(), key(link, resource, lease)).await?;
    // Only now: a higher fence may have come through while this one waited.
    match admit(link, resource, lease, fence).await? {
        Admit::Accepted => Ok(Ok(GateGuard::new(door))),
        refusal => Ok(Err(refusal)),
    }
}

async fn ask(
    link: &Link,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
    remember: bool,
) -> Result<Admit, Failure> {
    let params = [
        (&resource.as_str() as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
        (&lease.as_str(), Type::TEXT),
        (&number(fence), Type::INT8),
        (&remember, Type::BOOL),
    ];
    let rows = link.ask(&link.texts().admit, &params, Again::May).await?;
    let key = format!("table mark, resource {:?}, lease {:?}", resource.as_str(), lease.as_str());
    let fields = Fields::of(only(&rows)?, &key);
    match fields.some::<&str>("answer")? {
        "accepted" => Ok(Admit::Accepted),
        "stale" => Ok(Admit::Stale(Stale { presented: fence, highest: fields.fence("highest")? })),
        "never" => {
            let highest = fields.maybe_fence("highest")?;
            Err(StoreErrorKind::NeverIssued { fence, highest, resource: resource.clone() }.into())
        }
        other => Err(fields.damage("answer", format_args!("{other:?} is unexpected")).into()),
    }
}

/// The lock of a door: 64 bits of a hash. Two doors that meet, once in 2^32 pairs of doors or less often, only wait for
/// each other.
fn key(link: &Link, resource: &ResourceName, lease: &LeaseName) -> i64 {
    let (schema, resource, lease) = (link.texts().schema(), resource.as_str(), lease.as_str());
    let text = format!("leasehold gate {schema} {} {resource} {lease}", resource.len());
    let hash = Sha256::digest(text);
    i64::from_be_bytes(std::array::from_fn(|at| hash[at]))
}

/// The door, shut behind us until this is dropped: the connection ends then, and the transaction with it.
struct Door(#[allow(dead_code, reason = "held for its drop")] Client);

/// Waits until the door is open, and shuts it. Dropping the future gives up waiting.
async fn shut(config: &Config, key: i64) -> Result<Door, Failure> {
    let (client, connection) = connect(config).await?;
    tokio::spawn(drive(connection));
    // However long it takes, and however long the door then stays shut.
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
                 SET LOCAL idle_in_transaction_session_timeout = 0";
    let begun = timeout(config.response_timeout, client.batch_execute(begin)).await;
    begun.map_err(|_| Fault::Silence(config.response_timeout))?.map_err(Fault::from)?;
    let mut waiting = Waiting { token: client.cancel_token(), config, is_over: false };
    let locked = client.batch_execute(&format!("SELECT pg_advisory_xact_lock({key})")).await;
    waiting.is_over = true;
    locked.map_err(Fault::from)?;
    Ok(Door(client))
}

/// A wait at a door. Given up, it is cancelled: the server would not notice that nobody waits any more.
struct Waiting<'a> {
    token: CancelToken,
    config: &'a Config,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if let (Ok(here), Ok(tls)) = (Handle::try_current(), self.config.tls.connector()) {
            let (token, patience) = (self.token.clone(), self.config.connect_timeout);
            here.spawn(async move { timeout(patience, token.cancel_query(tls)).await.ok() });
        }
    }
}
