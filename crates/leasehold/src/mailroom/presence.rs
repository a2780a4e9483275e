//! One candidacy, kept in its roster.

use super::MailroomMsg;
use crate::seed;
use leasehold_core::{Candidacy, backoff::Backoff};
use ractor::ActorRef;
use std::{fmt, time::Duration};
use tokio::task::AbortHandle;

/// Tells a campaign its place in the roster.
pub(crate) struct Ranked(Box<dyn Fn(usize) + Send>);

impl Ranked {
    pub(crate) fn new(tell: impl Fn(usize) + Send + 'static) -> Self {
        Self(Box::new(tell))
    }
}

impl fmt::Debug for Ranked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ranked")
    }
}

/// One candidacy, kept in its roster by refreshing it every one to two ttls: an idle candidate writes less than once a
/// ttl.
pub(super) struct Presence {
    candidacy: Candidacy,
    ttl: Duration,
    ranked: Ranked,
    announcing: Option<AbortHandle>,
    timer: Option<AbortHandle>,
    // Spreads the refreshes of candidates that came together, after a deployment, say.
    spread: Backoff,
}

/// Entries of very short leases are refreshed no faster than this.
const SHORTEST_REFRESH: Duration = Duration::from_secs(5);
/// Entries of very long leases are refreshed no slower, so that the order of waiters stays true.
const LONGEST_REFRESH: Duration = Duration::from_secs(600);

impl Presence {
    pub(super) fn new(candidacy: Candidacy, ttl: Duration, ranked: Ranked) -> Self {
        // Only its jitter is used.
        let spread = Backoff::new(Duration::ZERO, Duration::ZERO, seed::of(candidacy.id));
        Self { candidacy, ttl, ranked, announcing: None, timer: None, spread }
    }

    pub(super) const fn candidacy(&self) -> &Candidacy {
        &self.candidacy
    }

    fn refresh_every(&self) -> Duration {
        (self.ttl * 2).clamp(SHORTEST_REFRESH, LONGEST_REFRESH)
    }

    /// How long an announcement stands: twice the refresh, so that one may be missed.
    pub(super) fn announced_for(&self) -> Duration {
        self.refresh_every() * 2
    }

    /// The announcement that is under way: the only one, since the next is made only after its end was seen.
    pub(super) fn announcing(&mut self, task: AbortHandle) {
        self.announcing = Some(task);
    }

    pub(super) fn seen(&mut self, before: usize, room: &ActorRef<MailroomMsg>) {
        self.ranked.0(before);
        let id = self.candidacy.id;
        let every = self.refresh_every();
        let timer =
            room.send_after(every - self.spread.jitter(every / 2), move || MailroomMsg::Refresh { id });
        if let Some(old) = self.timer.replace(timer.abort_handle()) {
            old.abort();
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.timer.take().into_iter().chain(self.announcing.take()).for_each(|task| task.abort());
    }
}
