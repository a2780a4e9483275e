//! Who wants which lease, until when.

use crate::{AttemptId, Candidacy, LeaseName, Moment, roster};
use std::{collections::BTreeMap, time::Duration};

/// The roster of the memory store. Pure, like [`Table`](super::Table).
#[derive(Debug, Clone, Default)]
pub(super) struct Roll {
    entries: BTreeMap<(LeaseName, AttemptId), Seat>,
    // The order of first announcements.
    joined: u64,
}

#[derive(Debug, Clone)]
struct Seat {
    candidacy: Candidacy,
    joined: u64,
    until: Moment,
}

impl Roll {
    /// Enters or refreshes. A refresh keeps the place in the order; one that comes too late begins anew.
    pub(super) fn announce(&mut self, now: Moment, candidacy: &Candidacy, ttl: Duration) {
        self.sweep(now);
        let next = self.joined + 1;
        let until = now.after(ttl);
        let seat = self
            .entries
            .entry((candidacy.name.clone(), candidacy.id))
            .and_modify(|seat| {
                seat.candidacy = candidacy.clone();
                seat.until = until;
            })
            .or_insert_with(|| Seat { candidacy: candidacy.clone(), joined: next, until });
        self.joined = self.joined.max(seat.joined);
    }

    pub(super) fn withdraw(&mut self, candidacy: &Candidacy) {
        self.entries.remove(&(candidacy.name.clone(), candidacy.id));
    }

    pub(super) fn candidates(&mut self, now: Moment, name: &LeaseName) -> Vec<Candidacy> {
        self.sweep(now);
        let ours = self.entries.values().filter(|seat| seat.candidacy.name == *name);
        let mut ranked: Vec<_> = ours.map(|seat| (seat.candidacy.clone(), seat.joined)).collect();
        roster::rank(&mut ranked);
        ranked.into_iter().map(|(candidacy, _)| candidacy).collect()
    }

    fn sweep(&mut self, now: Moment) {
        self.entries.retain(|_, seat| seat.until > now);
    }
}
