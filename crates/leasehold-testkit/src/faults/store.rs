//! A store behind faults.

use super::{Fault, Faults};
use leasehold_core::{
    Acquire, Admit, Bid, BoxFuture, Candidacy, Claim, Envelope, Fence, FenceGate, Finding, Force, GateGuard,
    Inbox, LeaseName, LeaseRecord, LeaseStore, Mail, Parting, Release, Renew, Renewal, ReplicaId,
    ResourceName, Roster, Scope, SharedStore, StoreError, StoreErrorKind, Traits, Verb, Watch,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Any store, with faults between it and its caller. Time is tokio's, so a paused test clock moves the delays too.
///
/// An answer that is lost is `Unknown` where the verb knows that outcome, and an error where it does not.
#[derive(Debug)]
pub struct FaultyStore {
    store: SharedStore,
    faults: Faults,
    // The feeds and slots of deaf watches and inboxes: dropped, they would end, and an end is a sign of life.
    deaf: Mutex<Vec<Box<dyn std::any::Any + Send>>>,
}

impl FaultyStore {
    /// A store that works, until the plan says otherwise.
    #[must_use]
    pub fn new(store: SharedStore) -> (Arc<Self>, Faults) {
        let faults = Faults::default();
        let faulty = Self { store, faults: faults.clone(), deaf: Mutex::default() };
        (Arc::new(faulty), faults)
    }

    /// Carries out a request as the plan says; one that is to be lost is not even made. `failed(error, perhaps)` is the
    /// answer for a failure: `perhaps` if the request may have been carried out.
    async fn around<'f, T>(
        &'f self,
        verb: Verb,
        lease: Option<&LeaseName>,
        request: impl FnOnce() -> BoxFuture<'f, T>,
        failed: impl FnOnce(StoreError, bool) -> T,
    ) -> (T, Fault) {
        self.around_or_later(verb, lease, request, std::future::ready(()), failed).await
    }

    /// The same for a request that may straggle: `later` is the same request once more, on its own.
    async fn around_or_later<'f, T>(
        &'f self,
        verb: Verb,
        lease: Option<&LeaseName>,
        request: impl FnOnce() -> BoxFuture<'f, T>,
        later: impl Future<Output = ()> + Send + 'static,
        failed: impl FnOnce(StoreError, bool) -> T,
    ) -> (T, Fault) {
        let fault = self.faults.draw(verb);
        let error = |kind| {
            let error = StoreError::new(kind, verb, self.store.address());
            match lease {
                Some(lease) => error.on(lease),
                None => error,
            }
        };
        let answer = match &fault {
            Fault::None | Fault::Skew(_) | Fault::Deaf => request().await,
            Fault::Slow(delay) => {
                tokio::time::sleep(*delay).await;
                request().await
            }
            Fault::Late(delay) => {
                let answer = request().await;
                tokio::time::sleep(*delay).await;
                answer
            }
            Fault::LoseRequest => failed(error(StoreErrorKind::Unreachable), true),
            Fault::LoseReply => {
                drop(request().await);
                failed(error(StoreErrorKind::Unreachable), true)
            }
            Fault::Straggle(delay) => {
                let delay = *delay;
                #[allow(clippy::disallowed_methods, reason = "a request on the wire belongs to nobody")]
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    later.await;
                });
                failed(error(StoreErrorKind::TimedOut(Duration::ZERO)), true)
            }
            Fault::Hang => std::future::pending().await,
            Fault::HangAfter => {
                drop(request().await);
                std::future::pending().await
            }
            Fault::Error(kind) => failed(error(kind.clone()), false),
            Fault::Panic => {
                panic!("planned: the client of {} panics at {}", self.store.address(), verb.as_str())
            }
        };
        (answer, fault)
    }

    async fn plainly<'f, T>(
        &'f self,
        verb: Verb,
        lease: Option<&LeaseName>,
        request: impl FnOnce() -> BoxFuture<'f, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.around(verb, lease, request, |error, _| Err(error)).await.0
    }

    fn keep(&self, feed: impl Send + 'static) {
        self.deaf.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(feed));
    }
}

fn skew(remaining: &mut Duration, fault: &Fault) {
    if let Fault::Skew(factor) = fault {
        *remaining = Duration::try_from_secs_f64(remaining.as_secs_f64() * factor).unwrap_or(Duration::MAX);
    }
}

impl LeaseStore for FaultyStore {
    fn address(&self) -> &str {
        self.store.address()
    }

    fn traits(&self) -> &Traits {
        self.store.traits()
    }

    fn acquire<'a>(&'a self, bid: &'a Bid) -> BoxFuture<'a, Acquire> {
        Box::pin(async move {
            let failed = |error, perhaps| {
                if perhaps { Acquire::Unknown(error) } else { Acquire::Refused(error) }
            };
            let request = || self.store.acquire(bid);
            let (store, same) = (self.store.clone(), bid.clone());
            let later = async move { drop(store.acquire(&same).await) };
            let (mut answer, fault) =
                self.around_or_later(Verb::Acquire, Some(&bid.name), request, later, failed).await;
            match &mut answer {
                Acquire::Granted(granted) => skew(&mut granted.remaining, &fault),
                Acquire::Held(held) => skew(&mut held.remaining, &fault),
                Acquire::Refused(_) | Acquire::Unknown(_) => {}
            }
            answer
        })
    }

    fn renew<'a>(&'a self, renewals: &'a [Renewal]) -> BoxFuture<'a, Vec<Renew>> {
        Box::pin(async move {
            let failed = |error: StoreError, perhaps| {
                let answer = |renewal: &Renewal| {
                    let error = error.clone().on(&renewal.claim.name);
                    if perhaps { Renew::Unknown(error) } else { Renew::Refused(error) }
                };
                renewals.iter().map(answer).collect()
            };
            let request = || self.store.renew(renewals);
            let (store, same) = (self.store.clone(), renewals.to_vec());
            let later = async move { drop(store.renew(&same).await) };
            let (mut answers, fault) = self.around_or_later(Verb::Renew, None, request, later, failed).await;
            for answer in &mut answers {
                if let Renew::Renewed { remaining } = answer {
                    skew(remaining, &fault);
                }
            }
            answers
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim, parting: &'a Parting) -> BoxFuture<'a, Release> {
        Box::pin(async move {
            let failed = |error, perhaps| {
                if perhaps { Release::Unknown(error) } else { Release::Refused(error) }
            };
            let request = || self.store.release(claim, parting);
            let (store, same, left) = (self.store.clone(), claim.clone(), parting.clone());
            let later = async move { drop(store.release(&same, &left).await) };
            self.around_or_later(Verb::Release, Some(&claim.name), request, later, failed).await.0
        })
    }

    fn force_release<'a>(
        &'a self,
        name: &'a LeaseName,
        by: &'a ReplicaId,
        reason: &'a str,
    ) -> BoxFuture<'a, Force> {
        Box::pin(async move {
            let failed = |error, perhaps| if perhaps { Force::Unknown(error) } else { Force::Refused(error) };
            let request = || self.store.force_release(name, by, reason);
            self.around(Verb::ForceRelease, Some(name), request, failed).await.0
        })
    }

    fn inspect<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<LeaseRecord, StoreError>> {
        Box::pin(self.plainly(Verb::Inspect, Some(name), || self.store.inspect(name)))
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Result<LeaseRecord, StoreError>>, StoreError>> {
        Box::pin(self.plainly(Verb::List, None, || self.store.list(prefix)))
    }

    fn watch(&self, scope: Scope) -> BoxFuture<'_, Result<Watch, StoreError>> {
        Box::pin(async move {
            let request = || self.store.watch(scope);
            match self.around(Verb::Watch, None, request, |error, _| Err(error)).await {
                (Ok(_), Fault::Deaf) => {
                    let (feed, watch) = Watch::open();
                    self.keep(feed);
                    Ok(watch)
                }
                (answer, _) => answer,
            }
        })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(self.plainly(Verb::Diagnose, None, || self.store.diagnose()))
    }
}

impl Roster for FaultyStore {
    fn announce<'a>(
        &'a self,
        candidacy: &'a Candidacy,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let request = move || self.store.announce(candidacy, ttl);
        Box::pin(self.plainly(Verb::Announce, Some(&candidacy.name), request))
    }

    fn withdraw<'a>(&'a self, candidacy: &'a Candidacy) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.plainly(Verb::Withdraw, Some(&candidacy.name), || self.store.withdraw(candidacy)))
    }

    fn candidates<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<Vec<Candidacy>, StoreError>> {
        Box::pin(self.plainly(Verb::Candidates, Some(name), || self.store.candidates(name)))
    }
}

impl Mail for FaultyStore {
    fn post<'a>(
        &'a self,
        to: &'a ReplicaId,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.plainly(Verb::Post, Some(&envelope.lease), || self.store.post(to, envelope)))
    }

    fn inbox<'a>(&'a self, me: &'a ReplicaId) -> BoxFuture<'a, Result<Inbox, StoreError>> {
        Box::pin(async move {
            let request = || self.store.inbox(me);
            match self.around(Verb::Inbox, None, request, |error, _| Err(error)).await {
                (Ok(_), Fault::Deaf) => {
                    let (slot, inbox) = Inbox::open();
                    self.keep(slot);
                    Ok(inbox)
                }
                (answer, _) => answer,
            }
        })
    }
}

impl FenceGate for FaultyStore {
    fn admit<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Admit> {
        Box::pin(async move {
            let request = || self.store.admit(resource, lease, fence);
            self.around(Verb::CheckFence, Some(lease), request, gate_failed).await.0
        })
    }

    fn hold_gate<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Result<GateGuard, Admit>> {
        Box::pin(async move {
            let request = || self.store.hold_gate(resource, lease, fence);
            let failed = |error, perhaps| Err(gate_failed(error, perhaps));
            self.around(Verb::CheckFence, Some(lease), request, failed).await.0
        })
    }
}

fn gate_failed(error: StoreError, perhaps: bool) -> Admit {
    if perhaps { Admit::Unknown(error) } else { Admit::Refused(error) }
}
