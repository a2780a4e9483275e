//! The schema of a store in PostgreSQL: made, or printed for somebody who may make it.

use crate::{cli::Common, config, exit::Exit, say, session};
use leasehold::{StoreError, Verb};
use leasehold_postgres::{Config, LAYOUT_VERSION, grants_sql, layout_sql};
use std::time::Duration;
use tokio::time::timeout;

/// Another host may be at it, or somebody may have locked what is to be changed.
const WITHIN: Duration = Duration::from_secs(60);

pub(super) async fn migrate(common: Common) -> Result<Exit, Exit> {
    let config = config_of(common)?;
    match timeout(WITHIN, leasehold_postgres::migrate(&config)).await {
        Ok(Ok(())) => {
            say::out(&format!("schema {} has layout version {LAYOUT_VERSION}\n", config.schema())).ok();
            Ok(Exit::Done)
        }
        Ok(Err(error)) => Err(session::store_failed(&error)),
        Err(_) => {
            say::note(format_args!("the schema was not laid out within {WITHIN:?}; nothing was changed"));
            Err(Exit::Unreachable)
        }
    }
}

pub(super) fn print(common: Common, role: Option<&str>) -> Result<Exit, Exit> {
    // The text depends on the schema alone; the server need not be there.
    let config = config_of(common)?;
    let mut text = layout_sql(config.schema());
    if let Some(role) = role {
        let grants = grants_sql(config.schema(), role).map_err(|problem| {
            say::note(problem);
            Exit::Usage
        })?;
        text += &format!("\n-- What a role needs to use the store.\n\n{grants}");
    }
    say::out(&text).ok();
    Ok(Exit::Done)
}

fn config_of(common: Common) -> Result<Config, Exit> {
    let url = common.store.filter(|url| !url.is_empty()).unwrap_or_else(config::default_store);
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    if !Config::SCHEMES.contains(&scheme) {
        say::note(format_args!(
            "{} needs no layout made for it: --migrate and --print-sql are for postgres:// stores",
            config::redacted(&url)
        ));
        return Err(Exit::Usage);
    }
    Config::parse(&url)
        .map_err(|kind| session::store_failed(&StoreError::new(kind, Verb::Connect, "postgres")))
}
