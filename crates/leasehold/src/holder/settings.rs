//! What a holder is given: how terms are held, and the one that was won.

use super::TermReport;
use crate::{context::Context, reply::Reply, standing::StandingFeed, term::Scope, worker::Crew};
use leasehold_core::{Fence, Moment, Timing, handoff::Plan};
use std::{sync::Arc, time::Duration};

/// What holds for every term of a lease or election.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) timing: Timing,
    /// How long a killed worker is waited for before that is reported.
    pub(crate) join_within: Duration,
    /// How long a release may take.
    pub(crate) release_within: Duration,
    pub(crate) abort_on_overrun: bool,
    /// Renew only while the worker gave a pulse within this time.
    pub(crate) max_silence: Option<Duration>,
}

impl Settings {
    /// The bounds of the steps of a handoff.
    pub(super) fn plan(&self) -> Plan {
        Plan {
            // Of the time that is given the worker has all that choosing leaves.
            quiesce: Duration::MAX,
            join: self.join_within,
            commit: self.release_within,
            // The clerk repeats a release as long as this.
            retry: self.release_within,
            // A crash costs no more.
            window: Plan::default().window.min(self.timing.ttl()),
            ..Plan::default()
        }
    }

    /// How long an heir that does not take over is waited for, at most.
    pub(crate) fn taking_over(&self) -> Duration {
        let plan = self.plan();
        plan.window + plan.answer
    }
}

pub(crate) struct HolderArgs {
    pub(crate) ctx: Context,
    pub(crate) settings: Settings,
    pub(crate) scope: Arc<Scope>,
    pub(crate) crew: Arc<dyn Crew>,
    pub(crate) standings: StandingFeed,
    /// When the granted bid was sent.
    pub(crate) sent: Moment,
    /// What the store said is left.
    pub(crate) remaining: Duration,
    /// The worker was started.
    pub(crate) started: Reply<Fence>,
    /// The term is over before its worker has ended.
    pub(crate) lost: Reply<Fence>,
    pub(crate) done: Reply<TermReport>,
}
