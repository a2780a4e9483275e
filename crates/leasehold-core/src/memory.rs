//! A store in this process: for tests, for examples, and for duties that one process divides among its tasks.
//!
//! Its fencing is as real as any other store's. What it cannot do is outlive its process, or be seen from another.
//!
//! ```text
//! MemoryStore ─ clones share ─► one mutex ─► Table   the leases, pure
//!                                            Roll    the roster, pure
//!                                            Post    the letters
//!                                            Gates   the fence marks
//!                                            feeds   of the watches
//! ```

mod entry;
mod gate;
mod post;
mod roll;
mod table;
#[cfg(test)]
mod tests;

pub use table::{MAX_REASON_BYTES, Table};

use self::{gate::Gates, post::Post, roll::Roll};
use crate::{
    Acquire, Admit, Bid, BoxFuture, Candidacy, Claim, Clock, Durability, Envelope, Fence, FenceGate, Finding,
    Force, GateGuard, Inbox, LeaseName, LeaseRecord, LeaseStore, Mail, Moment, Parting, Reach, Release,
    Renew, Renewal, ReplicaId, ResourceName, Roster, Scope, Severity, StoreError, TokioClock, Traits, Verb,
    Watch, WatchFeed, bounds,
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

const ADDRESS: &str = "memory:";

/// A store in this process. Clones are handles onto the same store, which ends with the last of them.
///
/// Every request is carried out at the first poll of its future: one dropped before was never asked, and there is
/// no later await at which to drop it. Only [`FenceGate::hold_gate`] waits.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    traits: Traits,
    // A std mutex: held for one table operation, never over an await.
    room: Mutex<Room>,
}

#[derive(Default)]
struct Room {
    table: Table,
    roll: Roll,
    post: Post,
    gates: Gates,
    feeds: Vec<(Scope, WatchFeed)>,
}

impl MemoryStore {
    /// An empty store that judges expiry by `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let mut traits = Traits::new("memory", Reach::Process, Durability::Process);
        traits.crash_witness = true;
        // A release reaches its watchers within a poll of their tasks; this leaves room for a busy runtime.
        traits.wake_up = Duration::from_millis(2);
        Self { shared: Arc::new(Shared { clock, traits, room: Mutex::default() }) }
    }

    /// Ends the claims of `replica` that asked for a crash witness, as the operating system would when it ends the
    /// replica's process. Their next terms are told [`Crashed`](crate::Predecessor::Crashed). Names the leases.
    ///
    /// This store shares the process of its holders, so it cannot see them die: whoever knows says it here.
    pub fn crash(&self, replica: &ReplicaId) -> Vec<LeaseName> {
        let (mut room, now) = self.enter();
        let ended = room.table.crash(now, replica);
        for name in &ended {
            room.publish(now, name);
        }
        ended
    }

    fn enter(&self) -> (MutexGuard<'_, Room>, Moment) {
        // A panic inside leaves whole entries behind: each operation changes one entry, last of all its steps.
        let room = self.shared.room.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that the table's time never runs backwards.
        let now = self.shared.clock.now();
        (room, now)
    }
}

/// Judges expiry by [`TokioClock`], so that it follows a paused test clock. That clock stands still while the machine is
/// suspended: a claim then lives longer, which is safe, and its holder, on a clock that does not, gave it up before.
impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Arc::new(TokioClock::new()))
    }
}

impl Room {
    fn publish(&mut self, now: Moment, name: &LeaseName) {
        self.feeds.retain(|(_, feed)| !feed.is_abandoned());
        if self.feeds.is_empty() {
            return;
        }
        let record = self.table.inspect(now, name);
        for (_, feed) in self.feeds.iter().filter(|(scope, _)| scope.covers(name)) {
            feed.state(record.clone());
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({:?})", Arc::as_ptr(&self.shared))
    }
}

impl LeaseStore for MemoryStore {
    fn address(&self) -> &str {
        ADDRESS
    }

    fn traits(&self) -> &Traits {
        &self.shared.traits
    }

    fn acquire<'a>(&'a self, bid: &'a Bid) -> BoxFuture<'a, Acquire> {
        Box::pin(async move {
            let (mut room, now) = self.enter();
            let answer = room.table.acquire(now, bid);
            if matches!(answer, Acquire::Granted(_)) {
                room.publish(now, &bid.name);
            }
            answer
        })
    }

    fn renew<'a>(&'a self, renewals: &'a [Renewal]) -> BoxFuture<'a, Vec<Renew>> {
        Box::pin(async move {
            let (mut room, now) = self.enter();
            renewals.iter().map(|renewal| room.table.renew(now, renewal)).collect()
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim, parting: &'a Parting) -> BoxFuture<'a, Release> {
        Box::pin(async move {
            let (mut room, now) = self.enter();
            let answer = room.table.release(now, claim, parting);
            if answer == Release::Released {
                room.publish(now, &claim.name);
            }
            answer
        })
    }

    fn force_release<'a>(
        &'a self,
        name: &'a LeaseName,
        by: &'a ReplicaId,
        reason: &'a str,
    ) -> BoxFuture<'a, Force> {
        Box::pin(async move {
            let (mut room, now) = self.enter();
            let answer = room.table.force_release(now, name, by, reason);
            if matches!(answer, Force::Forced { .. }) {
                room.publish(now, name);
            }
            answer
        })
    }

    fn inspect<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<LeaseRecord, StoreError>> {
        Box::pin(async move {
            let (room, now) = self.enter();
            Ok(room.table.inspect(now, name))
        })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Result<LeaseRecord, StoreError>>, StoreError>> {
        Box::pin(async move {
            let (room, now) = self.enter();
            Ok(room.table.list(now, prefix).map(Ok).collect())
        })
    }

    fn watch(&self, scope: Scope) -> BoxFuture<'_, Result<Watch, StoreError>> {
        Box::pin(async move {
            let (feed, watch) = Watch::of(&scope);
            let (mut room, now) = self.enter();
            // Under the lock, so that no change falls between the present states and the subscription.
            for record in room.table.list(now, "").filter(|record| scope.covers(&record.name)) {
                feed.state(record);
            }
            room.feeds.push((scope, feed));
            Ok(watch)
        })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        let finding = Finding {
            severity: Severity::Info,
            code: "process-only",
            text: "This store lives in one process: no other process sees its leases, and they end with it. \
                   Name another store if more than one process wants the duty."
                .to_owned(),
        };
        Box::pin(async move { Ok(vec![finding]) })
    }
}

impl Roster for MemoryStore {
    fn announce<'a>(
        &'a self,
        candidacy: &'a Candidacy,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (mut room, now) = self.enter();
            room.roll.announce(now, candidacy, ttl);
            Ok(())
        })
    }

    fn withdraw<'a>(&'a self, candidacy: &'a Candidacy) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.enter().0.roll.withdraw(candidacy);
            Ok(())
        })
    }

    fn candidates<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<Vec<Candidacy>, StoreError>> {
        Box::pin(async move {
            let (mut room, now) = self.enter();
            Ok(room.roll.candidates(now, name))
        })
    }
}

impl Mail for MemoryStore {
    fn post<'a>(
        &'a self,
        to: &'a ReplicaId,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            bounds::letter(envelope)
                .map_err(|kind| StoreError::new(kind, Verb::Post, ADDRESS).on(&envelope.lease))?;
            let (mut room, now) = self.enter();
            room.post.post(now, to, envelope);
            Ok(())
        })
    }

    fn inbox<'a>(&'a self, me: &'a ReplicaId) -> BoxFuture<'a, Result<Inbox, StoreError>> {
        Box::pin(async move {
            let (mut room, now) = self.enter();
            Ok(room.post.open(now, me))
        })
    }
}

impl FenceGate for MemoryStore {
    fn admit<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Admit> {
        Box::pin(async move {
            let mut room = self.enter().0;
            let issued = room.table.counter(lease);
            room.gates.admit(resource, lease, fence, issued)
        })
    }

    fn hold_gate<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Result<GateGuard, Admit>> {
        Box::pin(async move {
            let door = {
                let mut room = self.enter().0;
                // What was never issued gets no gate either, so that absurd requests cost no memory.
                let issued = room.table.counter(lease);
                if issued.is_none_or(|issued| fence > issued) {
                    return Err(room.gates.admit(resource, lease, fence, issued));
                }
                room.gates.door(resource, lease)
            };
            let held = door.lock_owned().await;
            // Only now: a higher fence may have come through while this one waited.
            match self.admit(resource, lease, fence).await {
                Admit::Accepted => Ok(GateGuard::new(held)),
                refusal => Err(refusal),
            }
        })
    }
}
