//! Who watches what, and what was shown.

use crate::{
    error::{Failure, Fault},
    link::{Again, Link},
    look::{self, Seen},
    texts::Texts,
};
use leasehold_core::{
    LeaseName, LeaseRecord, LeaseState, Scope, StoreError, StoreErrorKind, Verb, Watch, WatchFeed,
};
use std::collections::{BTreeMap, BTreeSet};

/// How many leases are read in one request.
const PORTION: usize = 1_000;

/// All watches of a process, found by lease: an event costs as much as those who watch its lease, however many others
/// there are.
#[derive(Debug, Default)]
pub(super) struct Watches {
    feeds: BTreeMap<u64, (Scope, WatchFeed)>,
    next: u64,
    /// Those who watch every lease.
    all: BTreeSet<u64>,
    /// Those whose names may change, and the changes that were followed.
    live: BTreeMap<u64, Option<u64>>,
    leases: BTreeMap<LeaseName, Lease>,
    /// The leases whose holders have a witness.
    witnessed: BTreeMap<i64, BTreeSet<LeaseName>>,
    /// What must be read: it was never shown, or something may have been missed.
    unread: BTreeSet<LeaseName>,
    /// Every lease there is must be read.
    unlisted: bool,
    /// What could not be read, for it is damaged, and was told.
    damaged: BTreeMap<LeaseName, StoreErrorKind>,
}

#[derive(Debug, Default)]
struct Lease {
    /// Those who watch it by its name.
    feeds: BTreeSet<u64>,
    shown: Option<Shown>,
}

/// What was shown last.
#[derive(Debug)]
struct Shown {
    /// The witness of its holder.
    witness: Option<i64>,
}

impl Watches {
    pub(super) fn add(&mut self, scope: Scope) -> Watch {
        let (feed, watch) = Watch::of(&scope);
        let id = self.next;
        self.next += 1;
        match &scope {
            Scope::All => {
                self.all.insert(id);
                self.unlisted = true;
            }
            Scope::Names(names) => {
                for name in names {
                    self.leases.entry(name.clone()).or_default().feeds.insert(id);
                    self.unread.insert(name.clone());
                }
            }
            Scope::Live(_) => _ = self.live.insert(id, None),
        }
        self.feeds.insert(id, (scope, feed));
        watch
    }

    /// Follows the names that come and go; whether there are others now. What happened to a new one before it was
    /// subscribed is read.
    pub(super) fn follow(&mut self) -> bool {
        let mut changed = Vec::new();
        for (id, (scope, _)) in &self.feeds {
            if let (Scope::Live(names), Some(followed)) = (scope, self.live.get_mut(id)) {
                let changes = Some(names.changes());
                if std::mem::replace(followed, changes) != changes {
                    changed.push((*id, names.clone()));
                }
            }
        }
        let mut is_changed = false;
        for (id, names) in changed {
            let gone = self.names_of(id).into_iter().filter(|name| !names.contains(name));
            for name in gone.collect::<Vec<_>>() {
                self.leave(&name, id);
                is_changed = true;
            }
            for name in names.to_vec() {
                if self.leases.entry(name.clone()).or_default().feeds.insert(id) {
                    self.unread.insert(name);
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// The leases that somebody watches by their names.
    fn names_of(&self, id: u64) -> Vec<LeaseName> {
        let watched = self.leases.iter().filter(|(_, lease)| lease.feeds.contains(&id));
        watched.map(|(name, _)| name.clone()).collect()
    }

    /// Forgets those that nobody reads any more; whether there were any.
    pub(super) fn sweep(&mut self) -> bool {
        let abandoned = |(id, (_, feed)): (&u64, &(Scope, WatchFeed))| feed.is_abandoned().then_some(*id);
        let gone: Vec<u64> = self.feeds.iter().filter_map(abandoned).collect();
        for id in &gone {
            match self.feeds.remove(id) {
                Some((Scope::Names(names), _)) => names.iter().for_each(|name| self.leave(name, *id)),
                Some((Scope::All, _)) => _ = self.all.remove(id),
                Some((Scope::Live(_), _)) => {
                    self.live.remove(id);
                    self.names_of(*id).iter().for_each(|name| self.leave(name, *id));
                }
                None => {}
            }
        }
        if !gone.is_empty() && self.all.is_empty() {
            // What was known for the sake of those who watched everything.
            self.unlisted = false;
            let strangers = self.leases.iter().filter(|(_, lease)| lease.feeds.is_empty());
            for name in strangers.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
                self.forget(&name);
            }
        }
        !gone.is_empty()
    }

    fn leave(&mut self, name: &LeaseName, id: u64) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.feeds.remove(&id);
            if lease.feeds.is_empty() && self.all.is_empty() {
                self.forget(name);
            }
        }
    }

    fn forget(&mut self, name: &LeaseName) {
        self.unread.remove(name);
        self.damaged.remove(name);
        if let Some(Lease { shown: Some(shown), .. }) = self.leases.remove(name) {
            self.unwitness(name, shown.witness);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    /// The channels that must be heard for them.
    pub(super) fn subscribe(&self, texts: &Texts, wanted: &mut BTreeSet<String>) {
        if !self.all.is_empty() {
            wanted.insert(texts.all.clone());
        }
        let named = self.leases.iter().filter(|(_, lease)| !lease.feeds.is_empty());
        wanted.extend(named.map(|(name, _)| texts.channel("lease", name.as_str())));
    }

    /// Whatever happened may have been missed.
    pub(super) fn doubt_all(&mut self) {
        self.unlisted = !self.all.is_empty();
        self.unread.extend(self.leases.keys().cloned());
    }

    /// Leases that were damaged may have been repaired.
    pub(super) fn doubt_damaged(&mut self) {
        self.unread.extend(self.damaged.keys().cloned());
    }

    /// The holders of these witnesses may have crashed.
    pub(super) fn doubt_holders(&mut self, witnesses: impl IntoIterator<Item = i64>) {
        let held = witnesses.into_iter().filter_map(|witness| self.witnessed.get(&witness));
        self.unread.extend(held.flatten().cloned());
    }

    /// The witnesses of the holders that are watched.
    pub(super) fn witnesses(&self) -> impl Iterator<Item = i64> {
        self.witnessed.keys().copied()
    }

    /// Something happened to a lease.
    pub(super) fn heard(&mut self, name: LeaseName) {
        if !self.all.is_empty() || self.leases.contains_key(&name) {
            self.unread.insert(name);
        }
    }

    /// Reads what must be read and shows it. After a failure it is to be tried again.
    pub(super) async fn read(&mut self, link: &Link) -> Result<(), Failure> {
        let unread = std::mem::take(&mut self.unread);
        let read = if self.unlisted {
            self.read_all(link, &unread).await
        } else {
            self.read_these(link, &unread).await
        };
        if read.is_ok() {
            self.unlisted = false;
        } else {
            self.unread.extend(unread);
        }
        read
    }

    /// All leases there are, and those that are not there any more.
    async fn read_all(&mut self, link: &Link, unread: &BTreeSet<LeaseName>) -> Result<(), Failure> {
        let mut missing = unread.clone();
        for read in look::list(link, "").await? {
            if let Some(name) = &read.0 {
                missing.remove(name);
            }
            self.take(link, read);
        }
        missing.into_iter().for_each(|name| self.show_nothing(name));
        Ok(())
    }

    async fn read_these(&mut self, link: &Link, unread: &BTreeSet<LeaseName>) -> Result<(), Failure> {
        let names: Vec<&LeaseName> = unread.iter().collect();
        for portion in names.chunks(PORTION) {
            let texts: Vec<&str> = portion.iter().map(|name| name.as_str()).collect();
            let rows = link.ask(&link.texts().look, &look::these(&texts), Again::May).await?;
            let mut missing: BTreeSet<&LeaseName> = portion.iter().copied().collect();
            for row in &rows {
                let read = look::read(row);
                if let Some(name) = &read.0 {
                    missing.remove(name);
                }
                self.take(link, read);
            }
            missing.into_iter().for_each(|name| self.show_nothing(name.clone()));
        }
        Ok(())
    }

    fn take(&mut self, link: &Link, (name, seen): look::Read) {
        match (seen, name) {
            (Ok(seen), _) => self.show(seen),
            (Err(fault), Some(name)) => {
                let error = Fault::told(fault, link.address(), Verb::Watch, Some(&name));
                self.damage(&name, &error);
            }
            (Err(error), None) => tracing::warn!(%error, "a lease without a name cannot be watched"),
        }
    }

    /// The store knows nothing of it.
    fn show_nothing(&mut self, name: LeaseName) {
        self.show(Seen { record: LeaseRecord::unknown(name), witness: None });
    }

    /// Says that the subscription is broken.
    pub(super) fn trouble(&self, error: &StoreError) {
        self.feeds.values().for_each(|(_, feed)| feed.trouble(error.clone()));
    }

    /// A damaged lease is told to those who watch it, once, and hides no other.
    fn damage(&mut self, name: &LeaseName, error: &StoreError) {
        if self.damaged.insert(name.clone(), error.kind().clone()).as_ref() != Some(error.kind()) {
            self.feeds_of(name).for_each(|feed| feed.trouble(error.clone()));
        }
    }

    fn show(&mut self, seen: Seen) {
        let Seen { record, witness } = seen;
        let name = record.name.clone();
        self.damaged.remove(&name);
        let before = self.leases.get_mut(&name).and_then(|lease| lease.shown.take());
        let is_nothing = record.counter.is_none() && record.state == LeaseState::Vacant;
        if is_nothing && before.is_none() {
            // Never there. One that was, and that the store has lost, is vacant.
            return;
        }
        self.feeds_of(&name).for_each(|feed| feed.state(record.clone()));
        let known = before.and_then(|shown| shown.witness);
        if known != witness {
            self.unwitness(&name, known);
            if let Some(witness) = witness {
                self.witnessed.entry(witness).or_default().insert(name.clone());
            }
        }
        self.leases.entry(name).or_default().shown = Some(Shown { witness });
    }

    fn unwitness(&mut self, name: &LeaseName, witness: Option<i64>) {
        if let Some(witness) = witness
            && let Some(held) = self.witnessed.get_mut(&witness)
        {
            held.remove(name);
            if held.is_empty() {
                self.witnessed.remove(&witness);
            }
        }
    }

    fn feeds_of<'a>(&'a self, name: &LeaseName) -> impl Iterator<Item = &'a WatchFeed> {
        let named = self.leases.get(name).into_iter().flat_map(|lease| &lease.feeds);
        named.chain(&self.all).filter_map(|id| self.feeds.get(id)).map(|(_, feed)| feed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::{AttemptId, Claim, Fence, NameSet, Predecessor, ReplicaId};
    use std::time::Duration;

    fn name(text: &str) -> LeaseName {
        LeaseName::new(text).unwrap()
    }

    fn held(lease: &str, fence: u64, witness: Option<i64>) -> Seen {
        let fence = Fence::new(fence).unwrap();
        let claim = Claim {
            name: name(lease),
            replica: ReplicaId::new("a").unwrap(),
            attempt: AttemptId::from_bytes([1; 16]),
            fence,
        };
        let (remaining, held_for) = (Duration::from_secs(1), Duration::ZERO);
        let state = LeaseState::Held { claim, remaining, held_for, crash_witness: witness.is_some() };
        let record =
            LeaseRecord { name: name(lease), counter: Some(fence), state, predecessor: Predecessor::None };
        Seen { record, witness }
    }

    fn witnesses(watches: &Watches) -> Vec<i64> {
        watches.witnesses().collect()
    }

    #[test]
    fn witnesses_are_known_as_long_as_a_lease_that_is_watched_is_held_under_them() {
        let mut watches = Watches::default();
        let one = watches.add(Scope::Names(vec![name("one"), name("two")]));
        for lease in ["one", "two"] {
            watches.show(held(lease, 1, Some(7)));
        }
        watches.show(held("two", 2, Some(5)));
        assert_eq!(witnesses(&watches), [5, 7]);
        watches.unread.clear();
        watches.doubt_holders([5]);
        assert_eq!(watches.unread, BTreeSet::from([name("two")]));
        watches.show(held("one", 2, None));
        assert_eq!(witnesses(&watches), [5]);
        drop(one);
        assert!(watches.sweep());
        assert_eq!(witnesses(&watches), [0_i64; 0]);
        assert!(watches.leases.is_empty() && watches.unread.is_empty());
    }

    #[test]
    fn names_that_come_and_go_are_followed_and_read_once() {
        let mut watches = Watches::default();
        let names = NameSet::default();
        names.insert(name("one"));
        let (live, named) =
            (watches.add(Scope::Live(names.clone())), watches.add(Scope::Names(vec![name("two")])));
        assert!(watches.follow());
        assert!(!watches.follow(), "nothing has changed since");
        assert_eq!(std::mem::take(&mut watches.unread), BTreeSet::from([name("one"), name("two")]));
        names.insert(name("two"));
        names.insert(name("three"));
        names.remove(&name("one"));
        assert!(watches.follow());
        assert_eq!(watches.unread, BTreeSet::from([name("three"), name("two")]));
        assert_eq!(watches.leases.keys().collect::<Vec<_>>(), [&name("three"), &name("two")]);
        names.remove(&name("two"));
        assert!(watches.follow());
        assert_eq!(watches.leases.len(), 2, "it is watched by its name, too");
        drop((live, named));
        assert!(watches.sweep());
        assert!(watches.leases.is_empty() && watches.live.is_empty() && watches.unread.is_empty());
    }

    #[test]
    fn a_lease_is_known_until_the_last_watch_of_it_ends() {
        let mut watches = Watches::default();
        let (everything, one) = (watches.add(Scope::All), watches.add(Scope::Names(vec![name("one")])));
        for lease in ["one", "two"] {
            watches.show(held(lease, 1, None));
        }
        drop(one);
        assert!(watches.sweep());
        assert_eq!(watches.leases.len(), 2);
        drop(everything);
        assert!(watches.sweep());
        assert!(watches.leases.is_empty() && watches.feeds.is_empty());
        assert!(!watches.sweep());
    }
}
