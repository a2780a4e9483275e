//! `watch`: a line per event of any lease, until interrupted.

mod story;

use super::attendants;
use crate::{
    cli::{Common, List},
    exit::Exit,
    say::{self, ReaderGone},
    session::Session,
};
use leasehold::{LeaseName, LeaseRecord, LeaseState, Scope, Sighting};
use std::{collections::BTreeMap, time::Duration};
use story::Story;
use tokio::time::{Instant, interval, sleep_until};

/// How often the reader is looked after when there is nothing to tell.
const READER_CHECK: Duration = Duration::from_secs(1);
/// What an expiry is waited for beyond the time that the store named.
const SLACK: Duration = Duration::from_millis(5);

pub(super) async fn watch(list: List, common: Common) -> Result<Exit, Exit> {
    let (_reaper, mut signals) = attendants()?;
    let session = Session::open(common).await?;
    let scope = if list.names.is_empty() { Scope::All } else { Scope::Names(list.names.clone()) };
    let mut sightings = session.ask(session.store.watch(scope)).await?;
    let mut stories = BTreeMap::new();
    let mut expiries = BTreeMap::new();
    let mut reader = interval(READER_CHECK);
    loop {
        let next = expiries.iter().min_by_key(|(_, at)| **at).map(|(name, at)| (LeaseName::clone(name), *at));
        let told = tokio::select! {
            biased;
            _ = signals.next_end() => return Ok(Exit::Done),
            sighting = sightings.next() => match sighting {
                Some(Sighting::State(record)) => tell(&record, list.json, &mut stories, &mut expiries),
                Some(Sighting::Trouble(error)) => {
                    say::note(format_args!("the watch is being restored; until then events come late: {error}"));
                    Ok(())
                }
                None => {
                    say::note("the store was closed");
                    return Ok(Exit::Unreachable);
                }
            },
            // Nobody tells of an expiry: whoever waits for it looks.
            name = due(next) => {
                expiries.remove(&name);
                match session.store.inspect(&name).await {
                    Ok(record) => tell(&record, list.json, &mut stories, &mut expiries),
                    Err(error) => {
                        say::note(error);
                        expiries.insert(name, Instant::now() + READER_CHECK);
                        Ok(())
                    }
                }
            }
            _ = reader.tick() => say::still_read(),
        };
        if told == Err(ReaderGone) {
            return Ok(Exit::Done);
        }
    }
}

async fn due(next: Option<(LeaseName, Instant)>) -> LeaseName {
    match next {
        Some((name, at)) => {
            sleep_until(at).await;
            name
        }
        None => std::future::pending().await,
    }
}

fn tell(
    record: &LeaseRecord,
    json: bool,
    stories: &mut BTreeMap<LeaseName, Story>,
    expiries: &mut BTreeMap<LeaseName, Instant>,
) -> Result<(), ReaderGone> {
    match record.state {
        LeaseState::Vacant => expiries.remove(&record.name),
        LeaseState::Held { remaining, .. } | LeaseState::Reserved { remaining, .. } => {
            expiries.insert(record.name.clone(), Instant::now() + remaining + SLACK)
        }
    };
    let lines = stories.entry(record.name.clone()).or_default().goes_on(record, json);
    if lines.is_empty() { Ok(()) } else { say::out(&lines) }
}
