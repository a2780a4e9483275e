//! The store: requests go to the thread that writes or to the one that looks, and come back as answers.

use crate::{
    acquire::acquire,
    config::Config,
    db::Db,
    diagnose::diagnose,
    error::{Failure, Fault},
    gate::{self, Doors},
    look, mail,
    release::{force, release},
    renew::renew,
    roster,
    site::Site,
    thread::{Caller, Silence, Writer, ask},
    watch::{Errand, Watcher},
};
use leasehold_core::{
    Acquire, Admit, Bid, BoxFuture, Candidacy, Claim, Durability, Envelope, Fence, FenceGate, Finding, Force,
    GateGuard, Inbox, LeaseName, LeaseRecord, LeaseStore, Mail, Parting, Reach, Release, Renew, Renewal,
    ReplicaId, ResourceName, Roster, Scope, StoreError, StoreErrorKind, Traits, Verb, Watch,
};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// Leases in one SQLite file, for the processes of one host.
///
/// Share it as `Arc<SqliteStore>`. It owns two threads, which end when it is dropped; the drop waits for the change
/// that is being written, usually a few milliseconds. Claims that it made are not released by the drop: they end by
/// their ttl.
pub struct SqliteStore {
    // Dropped in this order: the watcher holds a sender of the writer.
    watcher: Watcher,
    writer: Writer,
    doors: Doors,
    traits: Traits,
    site: Arc<Site>,
}

impl SqliteStore {
    /// Opens the store at an address that [`Config::parse`] reads, and makes it if it is missing: its directory for
    /// the owner alone (0700), its files too (0600).
    ///
    /// Blocks for as long as the disk takes, and for the busy timeout if the file is locked.
    ///
    /// # Errors
    /// By kind: the address cannot work (`Config`), the file is of another program (`Foreign`) or of a newer version
    /// (`NewerSchema`), damaged (`Corrupt`), not accessible (`Denied`, `ReadOnly`, `Unreachable`), locked for longer
    /// than the busy timeout (`Locked`), or the disk is full (`Full`). A file that is there was not changed.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        let config = Config::parse(address).map_err(|kind| StoreError::new(kind, Verb::Connect, "sqlite"))?;
        Self::with(&config)
    }

    /// Opens the store that a configuration describes; see [`SqliteStore::open`].
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn with(config: &Config) -> Result<Self, StoreError> {
        let site = Site::new(config).map_err(|fault| fault.told_without_site(&config.path))?;
        let site = Arc::new(site);
        Self::start(&site).map_err(|fault| fault.told(&site, Verb::Connect, None))
    }

    fn start(site: &Arc<Site>) -> Result<Self, Fault> {
        let threads = |cause| Fault::File { path: "the threads of the store".into(), cause };
        let mut db = Db::open(site.clone())?;
        crate::sweep::sweep(&mut db);
        let reader = Db::open(site.clone())?;
        let writer = Writer::start(db).map_err(threads)?;
        let watcher = Watcher::start(reader, writer.sender()).map_err(threads)?;
        let mut traits = Traits::new("sqlite", Reach::Host, Durability::PowerLoss);
        traits.crash_witness = true;
        // Measured: an event and a read take 1 ms; this leaves room for a busy host.
        traits.wake_up = Duration::from_millis(5);
        Ok(Self { watcher, writer, doors: Doors::default(), traits, site: site.clone() })
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db, &Caller<T>) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        ask(|job| self.writer.send(job), work).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        ask(|job| self.watcher.send(Errand::Do(job)), |db, _| work(db)).await
    }

    /// The error for an answer that will not come.
    fn silent(&self, silence: Silence, verb: Verb, lease: Option<&LeaseName>) -> StoreError {
        let kind = match silence {
            Silence::NeverAsked => StoreErrorKind::Closed,
            Silence::NoAnswer => StoreErrorKind::Other,
        };
        let error = StoreError::new(kind, verb, self.site.address.clone());
        match lease {
            Some(lease) => error.on(lease),
            None => error,
        }
    }

    /// For verbs whose callers need not tell a failure from an unknown outcome.
    async fn change(
        &self,
        verb: Verb,
        lease: &LeaseName,
        work: impl FnOnce(&mut Db) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), StoreError> {
        match self.write(|db, _| work(db)).await {
            Ok(done) => done.map_err(|failure| failure.fault.told(&self.site, verb, Some(lease))),
            Err(silence) => Err(self.silent(silence, verb, Some(lease))),
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // Whoever waits for another process's lock stops waiting, so that the threads end soon.
        self.site.close();
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteStore({})", self.site.address)
    }
}

/// `Refused` if nothing was done, `Unknown` if nobody knows.
macro_rules! outcome {
    ($store:ident, $asked:expr, $answer:ident, $verb:expr, $lease:expr) => {
        match $asked {
            Ok(answer) => answer,
            Err(silence) => {
                let error = $store.silent(silence, $verb, Some($lease));
                match silence {
                    Silence::NeverAsked => $answer::Refused(error),
                    Silence::NoAnswer => $answer::Unknown(error),
                }
            }
        }
    };
}

impl LeaseStore for SqliteStore {
    fn address(&self) -> &str {
        &self.site.address
    }

    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn acquire<'a>(&'a self, bid: &'a Bid) -> BoxFuture<'a, Acquire> {
        Box::pin(async move {
            let wanted = bid.clone();
            let asked = self.write(move |db, caller| acquire(db, &wanted, caller)).await;
            outcome!(self, asked, Acquire, Verb::Acquire, &bid.name)
        })
    }

    fn renew<'a>(&'a self, renewals: &'a [Renewal]) -> BoxFuture<'a, Vec<Renew>> {
        Box::pin(async move {
            let wanted = renewals.to_vec();
            match self.write(move |db, _| renew(db, &wanted)).await {
                Ok(answers) => answers,
                Err(silence) => {
                    let silent = |renewal: &Renewal| -> Renew {
                        let asked: Result<Renew, _> = Err(silence);
                        outcome!(self, asked, Renew, Verb::Renew, &renewal.claim.name)
                    };
                    renewals.iter().map(silent).collect()
                }
            }
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim, parting: &'a Parting) -> BoxFuture<'a, Release> {
        Box::pin(async move {
            let (ended, left) = (claim.clone(), parting.clone());
            let asked = self.write(move |db, _| release(db, &ended, &left)).await;
            outcome!(self, asked, Release, Verb::Release, &claim.name)
        })
    }

    fn force_release<'a>(
        &'a self,
        name: &'a LeaseName,
        by: &'a ReplicaId,
        reason: &'a str,
    ) -> BoxFuture<'a, Force> {
        Box::pin(async move {
            let (wanted, by, reason) = (name.clone(), by.clone(), reason.to_owned());
            let asked = self.write(move |db, _| force(db, &wanted, &by, &reason)).await;
            outcome!(self, asked, Force, Verb::ForceRelease, name)
        })
    }

    fn inspect<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<LeaseRecord, StoreError>> {
        Box::pin(async move {
            let wanted = name.clone();
            let read = move |db: &mut Db| db.read(|conn, site, now| look::one(conn, site, now, &wanted));
            match self.read(read).await {
                Ok(found) => found.map_err(|fault| fault.told(&self.site, Verb::Inspect, Some(name))),
                Err(silence) => Err(self.silent(silence, Verb::Inspect, Some(name))),
            }
        })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Result<LeaseRecord, StoreError>>, StoreError>> {
        Box::pin(async move {
            let prefix = prefix.to_owned();
            match self.read(move |db| look::list(db, &prefix)).await {
                Ok(found) => found,
                Err(silence) => Err(self.silent(silence, Verb::List, None)),
            }
        })
    }

    fn watch(&self, scope: Scope) -> BoxFuture<'_, Result<Watch, StoreError>> {
        Box::pin(async move {
            let (feed, watch) = Watch::of(&scope);
            let (done, added) = oneshot::channel();
            if !self.watcher.send(Errand::Watch(scope, feed, done)) {
                return Err(self.silent(Silence::NeverAsked, Verb::Watch, None));
            }
            match added.await {
                Ok(Ok(())) => Ok(watch),
                Ok(Err(fault)) => Err(fault.told(&self.site, Verb::Watch, None)),
                Err(_) => Err(self.silent(Silence::NoAnswer, Verb::Watch, None)),
            }
        })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async move {
            match self.read(diagnose).await {
                Ok(found) => found.map_err(|fault| fault.told(&self.site, Verb::Diagnose, None)),
                Err(silence) => Err(self.silent(silence, Verb::Diagnose, None)),
            }
        })
    }
}

impl Roster for SqliteStore {
    fn announce<'a>(
        &'a self,
        candidacy: &'a Candidacy,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let entry = candidacy.clone();
        Box::pin(self.change(Verb::Announce, &candidacy.name, move |db| roster::announce(db, &entry, ttl)))
    }

    fn withdraw<'a>(&'a self, candidacy: &'a Candidacy) -> BoxFuture<'a, Result<(), StoreError>> {
        let entry = candidacy.clone();
        Box::pin(self.change(Verb::Withdraw, &candidacy.name, move |db| roster::withdraw(db, &entry)))
    }

    fn candidates<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<Vec<Candidacy>, StoreError>> {
        Box::pin(async move {
            let wanted = name.clone();
            match self.read(move |db| roster::candidates(db, &wanted)).await {
                Ok(found) => found.map_err(|fault| fault.told(&self.site, Verb::Candidates, Some(name))),
                Err(silence) => Err(self.silent(silence, Verb::Candidates, Some(name))),
            }
        })
    }
}

impl Mail for SqliteStore {
    fn post<'a>(
        &'a self,
        to: &'a ReplicaId,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (to, letter) = (to.clone(), envelope.clone());
        Box::pin(self.change(Verb::Post, &envelope.lease, move |db| mail::post(db, &to, &letter)))
    }

    fn inbox<'a>(&'a self, me: &'a ReplicaId) -> BoxFuture<'a, Result<Inbox, StoreError>> {
        Box::pin(async move {
            let (slot, inbox) = Inbox::open();
            if self.watcher.send(Errand::Open(me.clone(), slot)) {
                Ok(inbox)
            } else {
                Err(self.silent(Silence::NeverAsked, Verb::Inbox, None))
            }
        })
    }
}

impl FenceGate for SqliteStore {
    fn admit<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Admit> {
        Box::pin(async move {
            let (guarded, issuer) = (resource.clone(), lease.clone());
            let asked = self.write(move |db, _| gate::admit(db, &guarded, &issuer, fence)).await;
            outcome!(self, asked, Admit, Verb::CheckFence, lease)
        })
    }

    fn hold_gate<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Result<GateGuard, Admit>> {
        Box::pin(async move {
            let (guarded, issuer) = (resource.clone(), lease.clone());
            let asked = self.write(move |db, _| gate::approach(db, &guarded, &issuer, fence)).await;
            let number = match asked {
                Ok(number) => number?,
                Err(silence) => {
                    return Err(Admit::Refused(self.silent(silence, Verb::CheckFence, Some(lease))));
                }
            };
            let refused =
                |fault: Fault| Admit::Refused(fault.told(&self.site, Verb::CheckFence, Some(lease)));
            let held = self.doors.hold(&self.site.place, number).await.map_err(refused)?;
            // Only now: a higher fence may have come through while this one waited.
            match self.admit(resource, lease, fence).await {
                Admit::Accepted => Ok(GateGuard::new(held)),
                refusal => Err(refusal),
            }
        })
    }
}
