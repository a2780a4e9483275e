//! The suite is worth what it catches: each flaw, met in stores of this world, fails the cases that are about it.

use leasehold_core::{
    Acquire, Admit, AttemptId, Bid, BoxFuture, Candidacy, Claim, Envelope, Fence, FenceGate, Finding, Force,
    GateGuard, Inbox, LeaseName, LeaseRecord, LeaseState, LeaseStore, Mail, ManualClock, MemoryStore,
    Parting, Release, Renew, Renewal, ReplicaId, ResourceName, Roster, Scope, Sighting, StoreError,
    StoreErrorKind, Traits, Watch, timing::MIN_TTL,
};
use leasehold_testkit::conformance::{CASES, Subject, run};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    None,
    ReleasesByName,
    RenewsByName,
    ForgetsAttempts,
    ForgetsSpentAttempts,
    IgnoresFloors,
    IgnoresHeirs,
    LosesNotes,
    HidesPredecessors,
    ClampsTtls,
    FoldsCase,
    MatchesWildcards,
    TellsNoVacancy,
    OverstatesWhatIsLeft,
    TakesRenewalsForGranted,
    OpensEveryGate,
    RanksNobody,
    LosesMail,
    ForcesForNoReason,
}

#[derive(Debug, Clone)]
struct Flawed {
    store: MemoryStore,
    flaw: Flaw,
}

impl Flawed {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn named(&self, name: &LeaseName) -> LeaseName {
        if self.has(Flaw::FoldsCase) {
            LeaseName::new(name.as_str().to_lowercase()).expect("as valid as before")
        } else {
            name.clone()
        }
    }

    async fn present(&self, name: &LeaseName) -> Option<Claim> {
        self.store.inspect(name).await.ok()?.claim().cloned()
    }
}

impl LeaseStore for Flawed {
    fn address(&self) -> &str {
        self.store.address()
    }

    fn traits(&self) -> &Traits {
        self.store.traits()
    }

    fn acquire<'a>(&'a self, bid: &'a Bid) -> BoxFuture<'a, Acquire> {
        Box::pin(async move {
            let mut bid = Bid { name: self.named(&bid.name), ..bid.clone() };
            if self.has(Flaw::ForgetsAttempts) {
                bid.attempt = AttemptId::random();
            }
            if self.has(Flaw::IgnoresFloors) {
                bid.floor = None;
            }
            if self.has(Flaw::ClampsTtls) {
                bid.ttl = bid.ttl.clamp(self.traits().min_ttl, self.traits().max_ttl);
            }
            let mut answer = self.store.acquire(&bid).await;
            if self.has(Flaw::ForgetsSpentAttempts)
                && matches!(&answer, Acquire::Refused(error) if *error.kind() == StoreErrorKind::SpentAttempt)
            {
                bid.attempt = AttemptId::random();
                answer = self.store.acquire(&bid).await;
            }
            if let Acquire::Granted(granted) = &mut answer {
                if self.has(Flaw::LosesNotes) {
                    granted.inherited = None;
                }
                if self.has(Flaw::HidesPredecessors) {
                    granted.predecessor = leasehold_core::Predecessor::None;
                }
                if self.has(Flaw::OverstatesWhatIsLeft) {
                    granted.remaining += Duration::from_millis(5);
                }
            }
            answer
        })
    }

    fn renew<'a>(&'a self, renewals: &'a [Renewal]) -> BoxFuture<'a, Vec<Renew>> {
        Box::pin(async move {
            if self.has(Flaw::TakesRenewalsForGranted) {
                return renewals.iter().map(|r| Renew::Renewed { remaining: r.ttl }).collect();
            }
            let mut asked = renewals.to_vec();
            for renewal in &mut asked {
                renewal.claim.name = self.named(&renewal.claim.name);
                if self.has(Flaw::RenewsByName)
                    && let Some(present) = self.present(&renewal.claim.name).await
                {
                    renewal.claim = present;
                }
                if self.has(Flaw::ClampsTtls) {
                    renewal.ttl = renewal.ttl.clamp(MIN_TTL, self.traits().max_ttl);
                }
            }
            self.store.renew(&asked).await
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim, parting: &'a Parting) -> BoxFuture<'a, Release> {
        Box::pin(async move {
            let mut claim = Claim { name: self.named(&claim.name), ..claim.clone() };
            if self.has(Flaw::ReleasesByName)
                && let Some(present) = self.present(&claim.name).await
            {
                claim = present;
            }
            let mut parting = parting.clone();
            if self.has(Flaw::IgnoresHeirs) {
                parting.heir = None;
            }
            self.store.release(&claim, &parting).await
        })
    }

    fn force_release<'a>(
        &'a self,
        name: &'a LeaseName,
        by: &'a ReplicaId,
        reason: &'a str,
    ) -> BoxFuture<'a, Force> {
        let reason = if self.has(Flaw::ForcesForNoReason) { "" } else { reason };
        self.store.force_release(name, by, reason)
    }

    fn inspect<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<LeaseRecord, StoreError>> {
        Box::pin(async move { self.store.inspect(&self.named(name)).await })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Result<LeaseRecord, StoreError>>, StoreError>> {
        let prefix = if self.has(Flaw::MatchesWildcards) { prefix.trim_end_matches('%') } else { prefix };
        self.store.list(prefix)
    }

    fn watch(&self, scope: Scope) -> BoxFuture<'_, Result<Watch, StoreError>> {
        Box::pin(async move {
            let mut watch = self.store.watch(scope).await?;
            if !self.has(Flaw::TellsNoVacancy) {
                return Ok(watch);
            }
            let (feed, filtered) = Watch::open();
            tokio::spawn(async move {
                while let Some(Sighting::State(record)) = watch.next().await {
                    if record.state != LeaseState::Vacant {
                        feed.state(record);
                    }
                }
            });
            Ok(filtered)
        })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        self.store.diagnose()
    }
}

impl Roster for Flawed {
    fn announce<'a>(&'a self, who: &'a Candidacy, ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.announce(who, ttl)
    }

    fn withdraw<'a>(&'a self, who: &'a Candidacy) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.withdraw(who)
    }

    fn candidates<'a>(&'a self, name: &'a LeaseName) -> BoxFuture<'a, Result<Vec<Candidacy>, StoreError>> {
        Box::pin(async move {
            let mut ranked = self.store.candidates(name).await?;
            if self.has(Flaw::RanksNobody) {
                ranked.sort_by(|a, b| a.replica.cmp(&b.replica));
            }
            Ok(ranked)
        })
    }
}

impl Mail for Flawed {
    fn post<'a>(&'a self, to: &'a ReplicaId, letter: &'a Envelope) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.post(to, letter)
    }

    fn inbox<'a>(&'a self, me: &'a ReplicaId) -> BoxFuture<'a, Result<Inbox, StoreError>> {
        Box::pin(async move {
            if self.has(Flaw::LosesMail) {
                drop(self.store.inbox(me).await?);
            }
            self.store.inbox(me).await
        })
    }
}

impl FenceGate for Flawed {
    fn admit<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Admit> {
        if self.has(Flaw::OpensEveryGate) {
            return Box::pin(async { Admit::Accepted });
        }
        self.store.admit(resource, lease, fence)
    }

    fn hold_gate<'a>(
        &'a self,
        resource: &'a ResourceName,
        lease: &'a LeaseName,
        fence: Fence,
    ) -> BoxFuture<'a, Result<GateGuard, Admit>> {
        self.store.hold_gate(resource, lease, fence)
    }
}

fn subject(flaw: Flaw) -> Subject {
    let clock = ManualClock::default();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let flawed = Arc::new(Flawed { store: store.clone(), flaw });
    let mut subject = Subject::new(flawed.clone(), flawed, clock).crashed_by(move |replica| {
        let store = store.clone();
        Box::pin(async move { drop(store.crash(&replica)) })
    });
    if flaw != Flaw::None {
        subject.patience = Duration::from_millis(500);
    }
    subject
}

/// The cases that fail. A case that waits for what never comes is cut off by its own patience.
fn failing(flaw: Flaw, among: &str) -> Vec<&'static str> {
    let of_interest = CASES.iter().filter(|case| case.name.contains(among));
    let fails = |name: &&str| catch_unwind(AssertUnwindSafe(|| run(name, async || subject(flaw)))).is_err();
    of_interest.map(|case| case.name).filter(fails).collect()
}

#[test]
fn a_store_without_a_flaw_fails_nothing() {
    assert_eq!(failing(Flaw::None, ""), [""; 0]);
}

macro_rules! caught {
    ($($test:ident: $flaw:ident fails $case:literal;)*) => {
        $(#[test]
        fn $test() {
            let failed = failing(Flaw::$flaw, $case);
            assert!(!failed.is_empty(), "{:?} went through", Flaw::$flaw);
        })*
    };
}

caught! {
    releasing_by_name_is_caught: ReleasesByName fails "rule_03_a_late_release";
    renewing_by_name_is_caught: RenewsByName fails "rule_03_a_late_renewal";
    a_renewal_taken_for_granted_is_caught: TakesRenewalsForGranted fails "rule_03_an_expired_claim";
    forgotten_attempts_are_caught: ForgetsAttempts fails "rule_04_a_repeated_attempt";
    a_spent_attempt_granted_again_is_caught: ForgetsSpentAttempts fails "rule_04_an_attempt_is_spent";
    an_ignored_floor_is_caught: IgnoresFloors fails "rule_01_the_floor";
    an_ignored_heir_is_caught: IgnoresHeirs fails "rule_05_until";
    a_lost_note_is_caught: LosesNotes fails "rule_06_a_note_goes";
    a_hidden_predecessor_is_caught: HidesPredecessors fails "rule_06_every_end";
    a_lost_reason_is_caught: ForcesForNoReason fails "rule_06_every_end";
    a_clamped_ttl_is_caught: ClampsTtls fails "a_ttl_outside";
    a_clamped_renewal_is_caught: ClampsTtls fails "a_renewal_outside";
    folded_case_is_caught: FoldsCase fails "rule_12_odd_names";
    a_wildcard_is_caught: MatchesWildcards fails "rule_12_prefixes";
    an_untold_vacancy_is_caught: TellsNoVacancy fails "rule_07_every_change";
    an_overstated_remaining_time_is_caught: OverstatesWhatIsLeft fails "rule_11_what_is_left";
    an_open_gate_is_caught: OpensEveryGate fails "a_gate_never_accepts";
    a_wrong_order_is_caught: RanksNobody fails "candidates_are_ranked";
    lost_mail_is_caught: LosesMail fails "a_letter_waits";
}
