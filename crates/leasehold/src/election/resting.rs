//! How long an election stays out of the line after a term.

use super::{Electing, SHORTEST_REST};
use crate::{event::WorkerOutcome, holder::TermReport};
use leasehold_core::handoff::Ending;
use std::time::Duration;

impl Electing {
    pub(super) fn rest_after(&mut self, report: Option<&TermReport>) -> Duration {
        let ttl = self.args.settings.timing.ttl();
        // A long lease is no reason to be long out of the line.
        let spread = (ttl / 10).min(SHORTEST_REST);
        let stepped_down = std::mem::take(&mut self.stepped_down);
        let Some(report) = report else { return ttl };
        if report.lasted > ttl.max(Duration::from_secs(10)) {
            self.rest.reset();
        }
        match &report.worker {
            // Somebody else has it: back into the line, for it may be handed back.
            _ if matches!(report.handed, Some(Ending::Done { .. })) => Duration::ZERO,
            // Others shall have it.
            _ if stepped_down => ttl,
            // Lost: back into the queue at once, a little spread. Also if the worker saw it first and gave up.
            _ if !report.cause.is_voluntary() => self.rest.jitter(spread),
            // The worker ended by itself: with nothing to do, or unable to. Neither may become a hot loop.
            WorkerOutcome::Finished | WorkerOutcome::Failed(_) | WorkerOutcome::NotStarted(_) => {
                self.rest.next_delay()
            }
            WorkerOutcome::Killed => self.rest.jitter(spread),
        }
    }
}
