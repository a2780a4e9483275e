//! The subscriptions of this process, and what they have been shown.

use crate::{
    db::Db,
    error::Fault,
    look::{self, Seen},
    row::{Row, last_turn},
};
use leasehold_core::{LeaseName, LeaseRecord, Scope, Verb, WatchFeed};
use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

/// All watches of one store instance.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    feeds: Vec<(Scope, WatchFeed)>,
    /// The last turn that was read.
    seen: i64,
    /// The file that `seen` counts in.
    generation: u64,
    /// Every name that was shown: a row that disappears is a change too.
    shown: HashSet<LeaseName>,
    /// Damage that was told, so that it is told once.
    damaged: HashSet<String>,
    /// Whether the last look failed, and the watchers know.
    broken: bool,
    /// Until the first of the leases that were shown ends by itself, counted from that look.
    pub(crate) next_end: Option<Duration>,
}

impl Feeds {
    pub(crate) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether anyone watches who must be told of more than news: of what ends by itself, say.
    pub(crate) fn is_attentive(&self) -> bool {
        self.feeds.iter().any(|(scope, _)| !scope.is_live())
    }

    /// Forgets the subscriptions that nobody reads.
    pub(crate) fn prune(&mut self) {
        self.feeds.retain(|(_, feed)| !feed.is_abandoned());
    }

    /// Subscribes, and shows the present states.
    pub(crate) fn add(&mut self, db: &mut Db, scope: Scope, feed: WatchFeed) -> Result<(), Fault> {
        let (seen, turn) = read(db, &[&scope])?;
        if self.feeds.is_empty() {
            self.seen = turn;
            self.generation = db.generation;
        }
        self.show(db, seen, &[(scope.clone(), feed.clone())]);
        self.feeds.push((scope, feed));
        if self.generation != db.generation {
            self.look_at_all(db);
        }
        Ok(())
    }

    /// Shows what changed hands since the last look.
    pub(crate) fn look_at_news(&mut self, db: &mut Db) {
        let news = news(db, self.seen);
        if self.generation != db.generation {
            return self.look_at_all(db);
        }
        match news {
            Ok((seen, turn)) => {
                self.seen = self.seen.max(turn);
                self.publish(db, seen);
            }
            Err(fault) => self.break_off(db, fault),
        }
    }

    /// Shows the leases of one witness.
    pub(crate) fn look_at_witness(&mut self, db: &mut Db, witness: &str) {
        match db
            .read(|conn, site, now| look::many(conn, site, now, "WHERE witness = ?1", [witness], |_| true))
        {
            Ok((seen, _)) => self.publish(db, seen),
            Err(fault) => self.break_off(db, fault),
        }
    }

    /// Shows the state of everything that is watched, whatever told or did not tell of a change.
    pub(crate) fn look_at_all(&mut self, db: &mut Db) {
        // Many live names are held by this process, and what was told of them stands until there is news. But in
        // another file nothing stands.
        let mut with_live = false;
        if self.feeds.iter().any(|(scope, _)| scope.is_live()) {
            let news = news(db, self.seen);
            with_live = self.generation != db.generation;
            match news {
                Ok((seen, _)) if !with_live => self.publish(db, seen),
                _ => {}
            }
        }
        let scopes = self.feeds.iter().map(|(scope, _)| scope);
        let scopes: Vec<_> = scopes.filter(|scope| with_live || !scope.is_live()).collect();
        match read(db, &scopes) {
            Ok((seen, turn)) => {
                self.generation = db.generation;
                self.seen = turn;
                self.broken = false;
                self.next_end = None;
                let found: HashSet<_> = seen.iter().filter_map(|seen| name_of(seen).cloned()).collect();
                let gone: Vec<_> = self.shown.difference(&found).cloned().collect();
                self.publish(db, seen);
                for name in gone {
                    self.shown.remove(&name);
                    self.publish(db, vec![Ok(LeaseRecord::unknown(name))]);
                }
            }
            Err(fault) => self.break_off(db, fault),
        }
    }

    fn publish(&mut self, db: &Db, seen: Vec<Seen>) {
        let feeds = std::mem::take(&mut self.feeds);
        self.show(db, seen, &feeds);
        self.feeds = feeds;
    }

    fn show(&mut self, db: &Db, seen: Vec<Seen>, feeds: &[(Scope, WatchFeed)]) {
        for seen in seen {
            let concerns = |scope: &Scope| match name_of(&seen) {
                Some(name) => scope.covers(name),
                // A row without a readable name concerns those who watch everything.
                None => *scope == Scope::All,
            };
            let concerned: Vec<_> = feeds.iter().filter(|(scope, _)| concerns(scope)).collect();
            let is_attended = concerned.iter().any(|(scope, _)| !scope.is_live());
            let covered: Vec<_> = concerned.into_iter().map(|(_, feed)| feed).collect();
            match seen {
                Ok(record) if !covered.is_empty() => {
                    let ends = record.remaining();
                    if is_attended && !ends.is_zero() {
                        self.next_end = Some(self.next_end.map_or(ends, |next| next.min(ends)));
                    }
                    if is_attended && record.counter.is_some() {
                        self.shown.insert(record.name.clone());
                    }
                    covered.iter().for_each(|feed| feed.state(record.clone()));
                }
                Err((name, fault)) if !covered.is_empty() && self.damaged.insert(fault.to_string()) => {
                    let error = fault.told(&db.site, Verb::Watch, name.as_ref());
                    covered.iter().for_each(|feed| feed.trouble(error.clone()));
                }
                _ => {}
            }
        }
    }

    /// Tells the watchers, once, that they see nothing until further notice.
    fn break_off(&mut self, db: &Db, fault: Fault) {
        if std::mem::replace(&mut self.broken, true) {
            return;
        }
        let error = fault.told(&db.site, Verb::Watch, None);
        tracing::warn!(%error, "the watch is interrupted");
        for (_, feed) in &self.feeds {
            feed.trouble(error.clone());
        }
    }
}

fn name_of(seen: &Seen) -> Option<&LeaseName> {
    match seen {
        Ok(record) => Some(&record.name),
        Err((name, _)) => name.as_ref(),
    }
}

/// What changed hands after a turn, and the last turn.
fn news(db: &mut Db, after: i64) -> Result<(Vec<Seen>, i64), Fault> {
    db.read(|conn, site, now| look::many(conn, site, now, "WHERE turn > ?1 ORDER BY turn", [after], |_| true))
}

/// Everything in the scopes, and the highest turn of the store at that moment.
fn read(db: &mut Db, scopes: &[&Scope]) -> Result<(Vec<Seen>, i64), Fault> {
    let mut names = BTreeSet::new();
    for scope in scopes {
        match scope {
            Scope::All => {
                return db.read(|conn, site, now| look::many(conn, site, now, "ORDER BY name", (), |_| true));
            }
            Scope::Names(some) => names.extend(some.iter().cloned()),
            Scope::Live(some) => names.extend(some.to_vec()),
        }
    }
    db.read(|conn, site, now| {
        let turn = last_turn(conn)?;
        let mut seen = Vec::new();
        for name in &names {
            match Row::find(conn, name) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    seen.push(look::one(conn, site, now, name).map_err(|fault| (Some(name.clone()), fault)));
                }
                Err(damage @ Fault::Known(_)) => seen.push(Err((Some(name.clone()), damage))),
                Err(fault) => return Err(fault),
            }
        }
        Ok((seen, turn))
    })
}
