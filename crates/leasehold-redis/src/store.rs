//! The store: each request is one script on the server, each answer is read strictly.

use crate::{
    acquire,
    config::Config,
    diagnose,
    error::{Failure, Fault},
    gate,
    hearing::Hearing,
    link::Link,
    look, mail, release, renew, roster, undo,
};
use leasehold_core::{
    Acquire, Admit, Bid, BoxFuture, Candidacy, Claim, Envelope, Fence, FenceGate, Finding, Force, GateGuard,
    Granted, Inbox, LeaseName, LeaseRecord, LeaseStore, Mail, Parting, Reach, Release, Renew, Renewal,
    ReplicaId, ResourceName, Roster, Scope, StoreError, StoreErrorKind, Traits, Verb, Watch, bounds,
};
use redis::Value;
use std::{fmt, time::Duration};

/// Leases on a Redis or Valkey server, behind Sentinels, or in a Cluster.
///
/// Share it as `Arc<RedisStore>`. It owns a connection, and a second one while something is watched; both end when it
/// is dropped. Claims that it made are not released by the drop: they end by their ttl.
pub struct RedisStore {
    link: Link,
    hearing: Hearing,
    traits: Traits,
}

impl RedisStore {
    /// Opens the store at an address that [`Config::parse`] reads, and waits until its server answers.
    ///
    /// # Errors
    /// By kind: the address cannot work (`Config`), nobody answers there (`Unreachable`, `TimedOut`), or access is
    /// denied (`Denied`).
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        let config = Config::parse(address).map_err(|kind| StoreError::new(kind, Verb::Connect, "redis"))?;
        Self::with(&config).await
    }

    /// Opens the store that a configuration describes; see [`RedisStore::open`].
    ///
    /// # Errors
    /// As [`RedisStore::open`].
    pub async fn with(config: &Config) -> Result<Self, StoreError> {
        let link =
            Link::open(config).await.map_err(|fault| fault.told(&config.address(), Verb::Connect, None))?;
        let mut traits = Traits::new("redis", Reach::Network, diagnose::first(&link).await);
        traits.crash_witness = true;
        // Replication is asynchronous: a replica that takes over may lack the last changes.
        traits.failover_may_lose = true;
        // Measured on one host: a message and a poll take below a millisecond; this leaves room for a network.
        traits.wake_up = Duration::from_millis(5);
        Ok(Self { hearing: Hearing::new(link.clone()), link, traits })
    }

    fn told(&self, failure: Failure, verb: Verb, lease: Option<&LeaseName>) -> StoreError {
        failure.fault.told(self.link.address(), verb, lease)
    }

    async fn acquired(&self, bid: &Bid) -> Result<Acquire, Failure> {
        bounds::ttl(bid.ttl)?;
        let witness = if bid.crash_witness { Some(self.hearing.witness(&bid.name).await?) } else { None };
        let call = acquire::call(self.link.keys(), bid, witness.as_deref());
        let Some(wait) = self.link.config().wait else {
            let (value, lost) = self.link.call_told(&call).await?;
            return self.answered(bid, value, lost);
        };
        let (value, lost, replicas) = self.link.call_then_wait(&call, wait).await?;
        match (self.answered(bid, value, lost)?, replicas) {
            (Acquire::Granted(granted), Ok(replicas)) if replicas < wait.replicas.into() => {
                let problem = format!(
                    "{replicas} of {} replicas had the claim within {:?}",
                    wait.replicas, wait.timeout
                );
                Err(self.take_back(&granted, StoreErrorKind::NotWriting(problem.into()).into()).await)
            }
            // Nobody knows how many, as for want of the right to wait.
            (Acquire::Granted(granted), Err(fault)) => Err(self.take_back(&granted, fault).await),
            (answer, _) => Ok(answer),
        }
    }

    /// `lost`: an earlier request of the same attempt was perhaps carried out.
    fn answered(&self, bid: &Bid, value: Value, lost: bool) -> Result<Acquire, Failure> {
        acquire::answer(self.link.keys(), bid, value).map_err(|failure| {
            if failure.is_unwitnessed() {
                self.hearing.rewitness();
            }
            // An attempt that is spent holds nothing, whichever of its requests was first.
            let settled = matches!(failure.fault, Fault::Known(StoreErrorKind::SpentAttempt));
            failure.or_done(lost && !settled)
        })
    }

    /// A grant that too few replicas have is none: it is taken back, with all that it had used up. Its claim stands on only
    /// if that cannot be done.
    async fn take_back(&self, granted: &Granted, fault: Fault) -> Failure {
        let undone = match self.link.call(&undo::call(self.link.keys(), &granted.claim)).await {
            Ok(value) => undo::answer(self.link.keys(), &granted.claim, value),
            Err(failure) => Err(failure.fault),
        };
        if let Err(fault) = &undone {
            tracing::debug!(lease = %granted.claim.name, error = %fault, "a grant was not taken back");
        }
        Failure { fault, perhaps_done: undone.is_err() }
    }

    async fn released(&self, claim: &Claim, parting: &Parting) -> Result<Release, Failure> {
        let (value, lost) = self.link.call_told(&release::call(self.link.keys(), claim, parting)).await?;
        release::answer(self.link.keys(), claim, value).map_err(|failure| failure.or_done(lost))
    }

    async fn forced(&self, name: &LeaseName, by: &ReplicaId, reason: &str) -> Result<Force, Failure> {
        let call = release::force_call(self.link.keys(), name, by, reason)?;
        let (value, lost) = self.link.call_told(&call).await?;
        release::force_answer(self.link.keys(), name, value).map_err(|failure| failure.or_done(lost))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({})", self.link.address())
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

impl LeaseStore for RedisStore {
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
            outcome!(self, self.released(claim, parting).await, Release, Verb::Release, &claim.name)
        })
    }

    fn force_release<'a>(
        &'a self,
        name: &'a LeaseName,
        by: &'a ReplicaId,
        reason: &'a str,
    ) -> BoxFuture<'a, Force> {
        Box::pin(async move {
            outcome!(self, self.forced(name, by, reason).await, Force, Verb::ForceRelease, name)
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
            let names = look::names(&self.link, prefix).await;
            let names = names.map_err(|failure| self.told(failure, Verb::List, None))?;
            let records = look::many(&self.link, &names).await.into_iter().zip(&names);
            let told =
                |(record, name): (Result<_, _>, _)| record.map_err(|f| self.told(f, Verb::List, Some(name)));
            Ok(records.map(told).collect())
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

impl Roster for RedisStore {
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

impl Mail for RedisStore {
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

impl FenceGate for RedisStore {
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
