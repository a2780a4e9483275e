//! The local proof of a claim, read at the point of use.

use crate::{
    Claim, Clock, Fence, LeaseName, Moment, ReplicaId,
    standing::{Lost, LostCause},
};
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The local proof of a claim: its fence, and until when it may be trusted.
///
/// Clones share one deadline, which each successful renewal moves. [`Grant::check`] compares the clock *at the call*,
/// never a flag that somebody should have set: it is right even after the process was paused or its runtime was
/// blocked. It costs one clock reading and one atomic load.
///
/// What it cannot do: a process may be paused between the check and the write that follows. Only a resource that
/// compares fences is safe then.
#[derive(Clone)]
pub struct Grant(Arc<Shared>);

struct Shared {
    claim: Claim,
    clock: Arc<dyn Clock>,
    // Nanoseconds on `clock`. OVER once the term has ended, so that the hot path reads one word.
    trusted_until: AtomicU64,
    cause: OnceLock<LostCause>,
}

const OVER: u64 = 0;

/// Leave to begin one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a permit is to be used at once: present its fence to the resource"]
pub struct Permit {
    fence: Fence,
    until: Moment,
}

impl Permit {
    /// The fence to present to the resource.
    #[must_use]
    pub const fn fence(self) -> Fence {
        self.fence
    }

    /// The end of trust when the permit was given. It may have moved since, but not to before this moment unless
    /// the term ended.
    #[must_use]
    pub const fn until(self) -> Moment {
        self.until
    }
}

impl From<Permit> for Fence {
    fn from(permit: Permit) -> Self {
        permit.fence
    }
}

/// The other side of a [`Grant`]: moves its deadline, and ends it.
///
/// Only whoever renews the claim has one, so that no bearer of a grant can make its own proof.
#[derive(Clone, Debug)]
pub struct Keeper(Grant);

/// An operation must not begin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PermitError {
    /// The lease is over.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The lease is held, but not surely for as long as the operation takes.
    #[error(
        "lease {name} under fence {fence} is held, but trusted for another {remaining:?} only, and the operation may take \
         {needed:?}: begin it after the next renewal, make it shorter, or lengthen the ttl"
    )]
    TooShort {
        /// The lease.
        name: LeaseName,
        /// The fence of the term.
        fence: Fence,
        /// What was asked for.
        needed: Duration,
        /// What is left.
        remaining: Duration,
    },
}

impl Keeper {
    /// The keeper of a grant of `claim`, trusted until the given moment of `clock`.
    #[must_use]
    pub fn new(claim: Claim, trusted_until: Moment, clock: Arc<dyn Clock>) -> Self {
        Self(Grant(Arc::new(Shared {
            claim,
            clock,
            trusted_until: AtomicU64::new(trusted_until.as_nanos()),
            cause: OnceLock::new(),
        })))
    }

    /// The grant that is kept.
    #[must_use]
    pub const fn grant(&self) -> &Grant {
        &self.0
    }

    /// Moves the deadline after a successful renewal. It never moves back, and an ended term stays ended.
    pub fn extend(&self, until: Moment) {
        let _ = self.0.0.trusted_until.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            (now != OVER && now < until.as_nanos()).then(|| until.as_nanos())
        });
    }

    /// Ends the term: every later check fails. The first cause stands.
    pub fn end(&self, cause: LostCause) {
        let _ = self.0.0.cause.set(cause);
        self.0.0.trusted_until.store(OVER, Ordering::Release);
    }
}

impl std::ops::Deref for Keeper {
    type Target = Grant;
    fn deref(&self) -> &Grant {
        &self.0
    }
}

impl Grant {
    /// The fence, to be presented with every write.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.0.claim.fence
    }

    /// The lease.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.0.claim.name
    }

    /// The replica that holds it: this one.
    #[must_use]
    pub fn replica(&self) -> &ReplicaId {
        &self.0.claim.replica
    }

    /// The whole claim.
    #[must_use]
    pub fn claim(&self) -> &Claim {
        &self.0.claim
    }

    /// The end of trust as it stands.
    #[must_use]
    pub fn trusted_until(&self) -> Moment {
        Moment::from_nanos(self.0.trusted_until.load(Ordering::Acquire))
    }

    /// How long the claim may still be trusted without a renewal; zero once it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.trusted_until().since(self.0.clock.now())
    }

    /// Whether the claim may be trusted now. Call it before each unit of work, and present the fence with it.
    ///
    /// # Errors
    /// [`Lost`] from the end of trust on, whether or not anyone noticed yet.
    pub fn check(&self) -> Result<Permit, Lost> {
        let until = self.trusted_until();
        if self.0.clock.now() < until { Ok(Permit { fence: self.fence(), until }) } else { Err(self.lost()) }
    }

    /// Leave to begin an operation that takes at most `op_budget`: refused if it could not finish within the trust
    /// that is left.
    ///
    /// # Errors
    /// [`PermitError::Lost`] from the end of trust on; [`PermitError::TooShort`] while the lease is held, but not for
    /// long enough: after the next renewal, at the latest a third of the ttl later, there is more.
    pub fn permit(&self, op_budget: Duration) -> Result<Permit, PermitError> {
        let permit = self.check()?;
        let remaining = self.remaining();
        if op_budget < remaining {
            Ok(permit)
        } else {
            Err(PermitError::TooShort {
                name: self.name().clone(),
                fence: self.fence(),
                needed: op_budget,
                remaining,
            })
        }
    }

    /// Why the term is over, once it is.
    #[must_use]
    pub fn cause(&self) -> Option<&LostCause> {
        self.0.cause.get()
    }

    #[cold]
    fn lost(&self) -> Lost {
        let cause = self.cause().cloned().unwrap_or(LostCause::Expired);
        Lost { name: self.name().clone(), fence: self.fence(), cause }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grant({}, trusted until {:?})", self.0.claim, self.trusted_until())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttemptId, ManualClock};

    const MS: Duration = Duration::from_millis(1);

    fn grant(clock: &ManualClock, until: Moment) -> Keeper {
        let claim = Claim {
            name: LeaseName::new("l").unwrap(),
            replica: ReplicaId::new("a").unwrap(),
            attempt: AttemptId::random(),
            fence: Fence::new(7).unwrap(),
        };
        Keeper::new(claim, until, Arc::new(clock.clone()))
    }

    #[test]
    fn the_clock_decides_at_the_call_and_nobody_needs_to_have_noticed() {
        let clock = ManualClock::starting_at(Moment::ORIGIN.after(1000 * MS));
        let grant = grant(&clock, Moment::ORIGIN.after(1100 * MS));
        assert!(grant.check().is_ok());
        clock.advance(100 * MS);
        assert_eq!(grant.check().unwrap_err().cause, LostCause::Expired);
    }

    #[test]
    fn an_operation_that_cannot_finish_in_time_is_not_permitted() {
        let clock = ManualClock::starting_at(Moment::ORIGIN.after(1000 * MS));
        let grant = grant(&clock, Moment::ORIGIN.after(1100 * MS));
        assert!(grant.permit(99 * MS).is_ok());
        for absurd in [100 * MS, Duration::MAX] {
            let refused = grant.permit(absurd).unwrap_err();
            assert!(matches!(refused, PermitError::TooShort { needed, .. } if needed == absurd), "{refused}");
        }
        assert!(grant.check().is_ok(), "a refused permit ends nothing");
        clock.advance(100 * MS);
        assert!(matches!(grant.permit(Duration::ZERO), Err(PermitError::Lost(_))));
    }

    #[test]
    fn an_ended_term_is_not_revived_by_a_late_renewal() {
        let clock = ManualClock::starting_at(Moment::ORIGIN.after(1000 * MS));
        let grant = grant(&clock, Moment::ORIGIN.after(1100 * MS));
        grant.extend(Moment::ORIGIN.after(1050 * MS));
        assert_eq!(grant.remaining(), 100 * MS, "trust never moves back");
        grant.end(LostCause::NoPulse);
        grant.end(LostCause::Released);
        grant.extend(Moment::ORIGIN.after(9000 * MS));
        assert_eq!(grant.check().unwrap_err().cause, LostCause::NoPulse, "the first cause stands");
        assert_eq!(grant.remaining(), Duration::ZERO);
    }
}
