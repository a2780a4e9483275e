//! Asking the servers of a Cluster.
//!
//! The client finds the server of a slot and keeps its map of them. It repeats nothing by itself: it would also repeat what
//! may have been carried out, and tell only the last answer. Here is repeated what a server certainly did not do.

use redis::{
    Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value, aio::ConnectionLike,
    cluster_async::ClusterConnection, cluster_routing::SingleNodeRoutingInfo,
};
use std::time::Duration;

/// How often something is asked again that was certainly not done, and the first pause; each is twice the one before.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(5);

/// Asks one command of whichever server has its slot.
pub(super) async fn ask(connection: &mut ClusterConnection, cmd: &Cmd) -> Result<Value, RedisError> {
    let mut answer = connection.req_packed_command(cmd).await.and_then(Value::extract_error);
    for again in 0..TRIES {
        match &answer {
            Err(error) if is_asked_elsewhere(error) => {
                answer = match elsewhere(error) {
                    Some(node) => ask_at(connection, node, cmd).await,
                    None => connection.req_packed_command(cmd).await.and_then(Value::extract_error),
                };
            }
            Err(error) if is_certainly_not_done(error) => {
                // Told that its map is old, the client is drawing a new one by now.
                tokio::time::sleep(PAUSE * 2_u32.pow(again)).await;
                answer = connection.req_packed_command(cmd).await.and_then(Value::extract_error);
            }
            _ => break,
        }
    }
    // Of a slot that is at neither end: one more reason to try again, and no fault of the address.
    answer.map_err(|error| if is_redirection(&error) { on_its_way(&error) } else { error })
}

fn is_redirection(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask))
}

fn on_its_way(error: &RedisError) -> RedisError {
    let said = error.detail().unwrap_or_default();
    redis::make_extension_error("TRYAGAIN".to_owned(), Some(format!("the slot is on its way: {said}")))
}

/// Whether a server refused for its place in the Cluster, or was not reached at all.
pub(super) fn is_certainly_not_done(error: &RedisError) -> bool {
    use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain};
    match error.kind() {
        ErrorKind::Server(kind) => {
            matches!(kind, Moved | Ask | TryAgain | ClusterDown | MasterDown | BusyLoading | ReadOnly)
        }
        ErrorKind::ClusterConnectionNotFound => true,
        _ => false,
    }
}

fn is_asked_elsewhere(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::Ask)
}

/// The server that a slot is moving to.
fn elsewhere(error: &RedisError) -> Option<SingleNodeRoutingInfo> {
    let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
    let (host, port) = (host.to_owned(), port.parse().ok()?);
    (!host.is_empty() && host != "?").then_some(SingleNodeRoutingInfo::ByAddress { host, port })
}

/// `ASKING` lets one command in at a server that does not have the slot yet.
async fn ask_at(
    connection: &mut ClusterConnection,
    node: SingleNodeRoutingInfo,
    cmd: &Cmd,
) -> Result<Value, RedisError> {
    let mut both = Pipeline::with_capacity(2);
    both.cmd("ASKING").add_command(cmd.clone());
    let mut values = connection.route_pipeline(both, 0, 2, node).await?;
    let answer = values.pop().unwrap_or(Value::Nil).extract_error();
    match values.pop().unwrap_or(Value::Nil).extract_error() {
        // For want of the right to ask; what came behind was refused for the same reason.
        Err(error) if answer.is_err() => Err(error),
        _ => answer,
    }
}
