//! Who watches what, and what was shown.

use super::ear::Subscriptions;
use crate::{
    error::{Failure, Fault},
    link::Link,
    look::{self, Seen},
};
use leasehold_core::{Fence, LeaseName, LeaseRecord, LeaseState, Scope, StoreError, Verb, Watch, WatchFeed};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Watches {
    feeds: Vec<(Scope, WatchFeed)>,
    /// What was shown last of each lease that is watched.
    shown: BTreeMap<LeaseName, Shown>,
}

#[derive(Debug)]
struct Shown {
    progress: (Option<Fence>, u8),
    /// Where its holder's process is heard.
    witness: Option<String>,
}

/// How far a lease has come: within a term it is first held, then kept for an heir, then vacant.
const fn progress(record: &LeaseRecord) -> (Option<Fence>, u8) {
    let step = match record.state {
        LeaseState::Held { .. } => 0,
        LeaseState::Reserved { .. } => 1,
        LeaseState::Vacant => 2,
    };
    (record.counter, step)
}

impl Watches {
    pub(super) fn add(&mut self, scope: Scope) -> Watch {
        let (feed, watch) = Watch::open();
        self.feeds.push((scope, feed));
        watch
    }

    /// Forgets those that nobody reads any more.
    pub(super) fn sweep(&mut self) {
        self.feeds.retain(|(_, feed)| !feed.is_abandoned());
        let feeds = &self.feeds;
        self.shown.retain(|name, _| feeds.iter().any(|(scope, _)| scope.covers(name)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    /// What must be heard for them.
    pub(super) fn subscribe(&self, link: &Link, wanted: &mut Subscriptions) {
        for (scope, _) in &self.feeds {
            match scope {
                Scope::All => wanted.pattern = Some(link.keys().every_channel()),
                Scope::Names(names) => {
                    wanted.channels.extend(names.iter().map(|name| link.keys().events(name)));
                }
            }
        }
        if wanted.pattern.is_some() {
            // The pattern tells all of them, once.
            wanted.channels.retain(|channel| link.keys().lease_of(channel.as_bytes(), ":events").is_none());
        }
    }

    /// Reads the leases of all scopes, or of the newest, and shows them.
    pub(super) async fn read(&mut self, link: &Link, newest_only: bool) -> Result<(), Failure> {
        let from = if newest_only { self.feeds.len().saturating_sub(1) } else { 0 };
        let mut names = BTreeSet::new();
        for (scope, _) in &self.feeds[from..] {
            match scope {
                Scope::All => names.extend(look::names(link, "").await?),
                Scope::Names(wanted) => names.extend(wanted.iter().cloned()),
            }
        }
        self.look(link, &names.into_iter().collect::<Vec<_>>()).await
    }

    /// Reads some leases and shows them, whatever was shown before: a read is never older than a message.
    async fn look(&mut self, link: &Link, names: &[LeaseName]) -> Result<(), Failure> {
        for (name, seen) in names.iter().zip(look::seen(link, names).await) {
            match seen {
                Ok(seen) if seen.record.counter.is_none() => {}
                Ok(seen) => self.show(seen),
                // It is damaged: that is told to those who watch it, and hides no other.
                Err(Failure { fault: fault @ Fault::Known(_), .. }) => {
                    self.tell(link, name, &fault.told(link.address(), Verb::Watch, Some(name)));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Shows what a message tells, unless it is older than what was shown: then the lease is read.
    pub(super) async fn heard(&mut self, link: &Link, name: &LeaseName, state: &[u8]) -> Result<(), Failure> {
        match Seen::new(link.keys(), name, state) {
            Ok(seen) if self.shown.get(name).is_none_or(|shown| shown.progress <= progress(&seen.record)) => {
                self.show(seen);
                Ok(())
            }
            // A store that lost its counter tells such stories, and so does a message that was overtaken.
            Ok(_) | Err(_) => self.look(link, std::slice::from_ref(name)).await,
        }
    }

    /// The channels of the holders that are watched.
    pub(super) fn witnesses(&self) -> BTreeSet<&str> {
        self.shown.values().filter_map(|shown| shown.witness.as_deref()).collect()
    }

    /// Reads the leases whose holders were heard on these channels, or on any.
    pub(super) async fn look_at_witnessed(
        &mut self,
        link: &Link,
        silent: Option<&BTreeSet<String>>,
    ) -> Result<(), Failure> {
        let is_meant = |witness: &String| silent.is_none_or(|silent| silent.contains(witness));
        let meant = self.shown.iter().filter(|(_, shown)| shown.witness.as_ref().is_some_and(is_meant));
        let names: Vec<LeaseName> = meant.map(|(name, _)| name.clone()).collect();
        self.look(link, &names).await
    }

    /// Says that the subscription is broken.
    pub(super) fn trouble(&self, error: &StoreError) {
        for (_, feed) in &self.feeds {
            feed.trouble(error.clone());
        }
    }

    fn tell(&self, _: &Link, name: &LeaseName, error: &StoreError) {
        for (_, feed) in self.feeds.iter().filter(|(scope, _)| scope.covers(name)) {
            feed.trouble(error.clone());
        }
    }

    fn show(&mut self, seen: Seen) {
        let name = seen.record.name.clone();
        for (_, feed) in self.feeds.iter().filter(|(scope, _)| scope.covers(&name)) {
            feed.state(seen.record.clone());
        }
        self.shown.insert(name, Shown { progress: progress(&seen.record), witness: seen.witness });
    }
}
