//! The store: each request is one statement on the server, each answer is read strictly.

use crate::{
    acquire,
    config::Config,
    diagnose,
    error::{Failure, Fault},
    gate,
    hearing::Hearing,
    layout,
    link::{Again, Link},
    look, mail, release, renew, roster,
};
use leasehold_core::{
    Acquire, Admit, Bid, BoxFuture, Candidacy, Claim, Durability, Envelope, Fence, FenceGate, Finding, Force,
    GateGuard, Inbox, LeaseName, LeaseRecord, LeaseStore, Mail, Parting, Reach, Release, Renew, Renewal,
    ReplicaId, ResourceName, Roster, Scope, StoreError, Traits, Verb, Watch, bounds,
};
use std::{fmt, time::Duration};

/// Leases in a PostgreSQL database.
///
/// Share it as `Arc<PostgresStore>`. It owns its connections: up to [`Config::with_connections`] for each runtime that asks,
/// and one more while something is watched or a crash witness is wanted. They end when it is dropped. Claims that it made
/// are not released by the drop: they end by their ttl.
pub struct PostgresStore {
    link: Link,
    hearing: Hearing,
    traits: Traits,
}

impl PostgresStore {
    /// Opens the store at an address that [`Config::parse`] reads, and waits until its server answers.
    ///
    /// # Errors
    /// By kind: the address cannot work, or the schema is not laid out (`Config`); nobody answers there (`Unreachable`,
    /// `TimedOut`), access is denied (`Denied`), it is a standby (`ReadOnly`), or a newer program laid it out
    /// (`NewerSchema`).
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        let config =
            Config::parse(address).map_err(|kind| StoreError::new(kind, Verb::Connect, "postgres"))?;
        Self::with(&config).await
    }

    /// Opens the store that a configuration describes; see [`PostgresStore::open`].
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn with(config: &Config) -> Result<Self, StoreError> {
        let told = |failure: Failure| failure.fault.told(&config.address(), Verb::Connect, None);
        if config.migrates {
            layout::migrated(config).await.map_err(told)?;
        }
        let link = Link::open(config).await.map_err(|fault| told(fault.into()))?;
        check_layout(&link).await.map_err(told)?;
        let mut traits = Traits::new("postgres", Reach::Network, Durability::PowerLoss);
        traits.crash_witness = true;
        // A standby that is promoted may lack the last changes, unless replication is synchronous.
        traits.failover_may_lose = true;
        // Measured on one host: a notification and a read take about a millisecond; this leaves room for a network.
        traits.wake_up = Duration::from_millis(5);
        let store = Self { hearing: Hearing::new(link.clone()), link, traits };
        diagnose::warn(&store.link).await;
        Ok(store)
    }

    fn told(&self, failure: Failure, verb: Verb, lease: Option<&LeaseName>) -> StoreError {
        failure.fault.told(self.link.address(), verb, lease)
    }

    async fn acquired(&self, bid: &Bid) -> Result<Acquire, Failure> {
        bounds::ttl(bid.ttl)?;
        let witness = if bid.crash_witness { Some(self.hearing.witness().await?) } else { None };
        acquire::acquire(&self.link, bid, witness).await
    }
}

async fn check_layout(link: &Link) -> Result<(), Failure> {
    let rows = link.ask(&link.texts().version, &[], Again::May).await?;
    let version = rows.first().map(|row| row.try_get::<_, i32>(0)).transpose().map_err(Fault::from)?;
    Ok(layout::check(version.unwrap_or(0))?)
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({})", self.link.address())
    }
}

/// `Refused` if nothing was done, `Unknown` if nobody knows.
macro_rules! outcome {
    ($store:ident, $asked:expr, $answer:ident, $verb:expr, $lease:expr) => {
        match $asked {
            Ok(answer) => answer,
            Err(failure) => {
                let perhaps_done = failure.perhaps_done;
                let error = $store.told(failure, $verb, Some($lease));
                if perhaps_done { $answer::Unknown(error) } else { $answer::Refused(error) }
            }
        }
    };
}

impl LeaseStore for PostgresStore {
    fn address(&self) -> &str {
        self.link.address()
    }

    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn acquire<'a>(&'a self, bid: &'a Bid) -> BoxFuture<'a, Acquire> {
        Box::pin(async move { outcome!(self, self.acquired(bid).await, Acquire, Verb::Acquire, &bid.name) })
    }

    fn renew<'a>(&'a self, renewals: &'a [Renewal]) -> BoxFuture<'a, Vec<Renew>> {
        Box::pin(async move {
            let answers = renew::renew(&self.link, renewals).await;
            if answers.iter().any(|answer| matches!(answer, Err(failure) if failure.is_unwitnessed())) {
                self.hearing.rewitness();
            }
            renewals
                .iter()
                .zip(answers)
                .map(|(renewal, answer)| outcome!(self, answer, Renew, Verb::Renew, &renewal.claim.name))
                .collect()
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim, parting: &'a Parting) -> BoxFuture<'a, Release> {
        Box::pin(async move {
            outcome!(
                self,
                release::release(&self.link, claim, parting).await,
                Release,
                Verb::Release,
                &claim.name
            )
        })
    }

    fn force_release<'a>(
        &'a self,
        name: &'a LeaseName,
        by: &'a ReplicaId,
        reason: &'a str,
    ) -> BoxFuture<'a, Force> {
        Box::pin(async move {
            outcome!(
                self,
                release::force(&self.link, name, by, reason).await,
                Force,
                Verb::ForceRelease,
                name
            )
        })
    }

    fn inspect<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<LeaseRecord, StoreError>> {
        Box::pin(async move {
            look::one(&self.link, name).await.map_err(|failure| self.told(failure, Verb::Inspect, Some(name)))
        })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Result<LeaseRecord, StoreError>>, StoreError>> {
        Box::pin(async move {
            let read = look::list(&self.link, prefix).await;
            let told = |(name, seen): look::Read| {
                let told = |fault: Fault| fault.told(self.link.address(), Verb::List, name.as_ref());
                seen.map(|seen| seen.record).map_err(told)
            };
            let read = read.map_err(|failure| self.told(failure, Verb::List, None))?;
            Ok(read.into_iter().map(told).collect())
        })
    }

    fn watch(&self, scope: Scope) -> BoxFuture<'_, Result<Watch, StoreError>> {
        Box::pin(async move {
            self.hearing.watch(scope).await.map_err(|failure| self.told(failure, Verb::Watch, None))
        })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async move {
            diagnose::diagnose(&self.link).await.map_err(|failure| self.told(failure, Verb::Diagnose, None))
        })
    }
}

impl Roster for PostgresStore {
    fn announce<'a>(
        &'a self,
        candidacy: &'a Candidacy,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let announced = roster::announce(&self.link, candidacy, ttl).await;
            announced.map_err(|failure| self.told(failure, Verb::Announce, Some(&candidacy.name)))
        })
    }

    fn withdraw<'a>(&'a self, candidacy: &'a Candidacy) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let withdrawn = roster::withdraw(&self.link, candidacy).await;
            withdrawn.map_err(|failure| self.told(failure, Verb::Withdraw, Some(&candidacy.name)))
        })
    }

    fn candidates<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<Vec<Candidacy>, StoreError>> {
        Box::pin(async move {
            let found = roster::candidates(&self.link, name).await;
            found.map_err(|failure| self.told(failure, Verb::Candidates, Some(name)))
        })
    }
}

impl Mail for PostgresStore {
    fn post<'a>(
        &'a self,
        to: &'a ReplicaId,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let posted = mail::post(&self.link, to, envelope).await;
            posted.map_err(|failure| self.told(failure, Verb::Post, Some(&envelope.lease)))
        })
    }

    fn inbox<'a>(&'a self, me: &'a ReplicaId) -> BoxFuture<'a, Result<Inbox, StoreError>> {
        Box::pin(async move {
            self.hearing.inbox(me).await.map_err(|failure| self.told(failure, Verb::Inbox, None))
        })
    }
}

impl FenceGate for PostgresStore {
    fn admit<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Admit> {
        Box::pin(async move {
            let admitted = gate::admit(&self.link, resource, lease, fence).await;
            outcome!(self, admitted, Admit, Verb::CheckFence, lease)
        })
    }

    fn hold_gate<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Result<GateGuard, Admit>> {
        Box::pin(async move {
            match gate::hold(&self.link, resource, lease, fence).await {
                Ok(held) => held,
                Err(failure) => {
                    let failed: Result<Admit, Failure> = Err(failure);
                    Err(outcome!(self, failed, Admit, Verb::CheckFence, lease))
                }
            }
        })
    }
}
