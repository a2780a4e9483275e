//! The process of one replica.

use super::{
    args::{Args, Part},
    endpoint::Endpoint,
    fan_out::FanOut,
    gate::Gate,
    leader,
    report::{Report, report},
    upstream::Upstream,
};
use crate::{hold::Hold, process::obey};
use std::{error::Error, process::ExitCode, sync::Arc};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// Serves, and campaigns for the lead, until SIGTERM or SIGINT; or until its parent is gone.
pub async fn live(args: Args, part: Part) -> ExitCode {
    match act(args, part).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(Report::Trouble { what: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

async fn act(args: Args, part: Part) -> Result<(), Box<dyn Error + Send + Sync>> {
    let hold = Arc::new(Hold::default());
    obey(Arc::clone(&hold));
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);

    let gate = Gate::open(&part.journal)?;
    let last = gate.last();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let addr = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, Endpoint::new(gate).router()).await });
    report(Report::Listening { addr, last });

    let http = reqwest::Client::new();
    let fan_out = FanOut {
        me: part.replica,
        replicas: args.ids(),
        upstream: Upstream::new(part.upstream, http.clone()),
        http,
        hold,
    };
    let campaign = leader::campaign(args.store.as_deref().unwrap_or_default(), args.ttl, fan_out).await?;
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    campaign.leave().await;
    Ok(())
}
