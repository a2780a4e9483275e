//! PgBouncer, which has a session of the server only lent to a client: for a transaction, or as long as it is connected.

use anyhow::{Result, ensure};
use leasehold_testkit::postgres::{PgBouncer, PoolMode, PostgresServer};

use crate::{
    direct::Session,
    trial::{After, Finding, LOCK, Next, TRY, UNLOCK},
};

pub(crate) async fn findings(server: &PostgresServer, eyes: &Session) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for mode in [PoolMode::Transaction, PoolMode::Statement] {
        findings.push(lent_for_a_while(mode, server, eyes).await?);
    }
    findings.push(lent_for_a_session(server, eyes).await?);
    Ok(findings)
}

/// The lock is returned behind the back of whoever took it, who is still connected and believes in it.
async fn lent_for_a_while(mode: PoolMode, server: &PostgresServer, eyes: &Session) -> Result<Finding> {
    let mut pooler = PgBouncer::new(mode).config("default_pool_size", "1").in_front_of(server).await?;
    let first = Session::open(&pooler.url()).await?;
    ensure!(first.ask(LOCK).await?);
    let after = if eyes.sees_lock().await? { After::Held } else { After::Free };
    let other = Session::open(&pooler.url()).await?;
    let next = match other.ask(TRY).await? {
        true if after == After::Held => Next::Stacked,
        true => Next::Granted,
        false => Next::Refused,
    };
    ensure!(next == Next::Refused || other.ask(UNLOCK).await?);
    drop((first, other));
    let gone = Session::open(&pooler.url()).await?;
    ensure!(gone.ask("SELECT true").await?, "both are gone, and the pooler serves the next");
    let freed = if eyes.sees_lock().await? { "when the pooler closes its connection" } else { "before that" };
    pooler.kill().await;
    eyes.until_free().await?;
    Ok(Finding { pool: "PgBouncer", way: format!("`pool_mode = {mode}`"), after, next, freed })
}

/// The lock is its client's own until that leaves; then the pooler cleans the session.
async fn lent_for_a_session(server: &PostgresServer, eyes: &Session) -> Result<Finding> {
    let mode = PoolMode::Session;
    let pooler = PgBouncer::new(mode).config("default_pool_size", "1").in_front_of(server).await?;
    let first = Session::open(&pooler.url()).await?;
    ensure!(first.ask(LOCK).await? && eyes.sees_lock().await?);
    drop(first);
    // The only session of the server: whoever has it now comes after the cleaning.
    let other = Session::open(&pooler.url()).await?;
    ensure!(other.ask("SELECT true").await?);
    let after = if eyes.sees_lock().await? { After::Held } else { After::Free };
    let next = match other.ask(TRY).await? {
        true if after == After::Held => Next::Stacked,
        true => Next::Granted,
        false => Next::Refused,
    };
    let way = format!("`pool_mode = {mode}`, with the `server_reset_query` that is its default");
    Ok(Finding { pool: "PgBouncer", way, after, next, freed: "when its client leaves" })
}
