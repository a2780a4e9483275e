//! Looking out, while leading, for a candidate that is preferred.

use super::{Electing, ElectionMsg, Phase};
use crate::{handoff::Asker, mailroom::MailroomMsg, reply::Reply};
use leasehold_core::{
    Candidacy, TraceContext,
    handoff::{Ask, Otherwise, To, preference::Preferring},
};
use ractor::ActorRef;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How long a handoff to somebody preferred may take; nobody is in a hurry.
const WITHIN: Duration = Duration::from_secs(60);

/// One term's look-out.
pub(super) struct Lookout {
    preferring: Preferring,
    every: Duration,
    timer: AbortHandle,
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl Electing {
    /// A term has begun.
    pub(super) fn look_out(&mut self, me: &ActorRef<ElectionMsg>) {
        let now = self.args.ctx.now();
        self.lookout = self.args.preference.map(|preference| {
            let every = preference.look_every();
            let preferring = Preferring::begin(preference, self.args.manner.priority, now);
            Lookout { preferring, every, timer: wake(me, every) }
        });
    }

    /// Leadership was put here on purpose.
    pub(super) fn stay(&mut self, at_least: Duration) {
        if let Some(lookout) = &mut self.lookout {
            lookout.preferring.stay(self.args.ctx.now(), at_least);
        }
    }

    pub(super) fn look_at_line(&self, me: &ActorRef<ElectionMsg>) {
        if self.lookout.is_some() {
            let (me, name) = (me.clone(), self.args.manner.name.clone());
            let done = Reply::new(move |line| drop(me.cast(ElectionMsg::Line(line))));
            let _ = self.args.ctx.mailroom.cast(MailroomMsg::Candidates { name, done });
        }
    }

    pub(super) fn line(&mut self, me: &ActorRef<ElectionMsg>, line: Option<Vec<Candidacy>>) {
        let Some(lookout) = &mut self.lookout else { return };
        lookout.timer = wake(me, lookout.every);
        let Some(line) = line else { return };
        let preferred = lookout.preferring.look(self.args.ctx.now(), &line);
        if let Some(preferred) = preferred.filter(|_| matches!(self.phase, Phase::Leading(_))) {
            let ask = Ask {
                reason: format!("{preferred} has a higher priority").into(),
                to: To::Replica(preferred),
                within: WITHIN,
                otherwise: Otherwise::LeadOn,
                // Whoever takes over is preferred: it stays for as long as nobody better comes.
                stay: Duration::ZERO,
                by: "the order of priorities".into(),
                trace: TraceContext::NONE,
            };
            self.hand_off(ask, Asker::nobody());
        }
    }

    /// How long leadership stays where it is put on purpose.
    pub(super) fn stays(&self) -> Duration {
        self.args.preference.unwrap_or_default().stay
    }
}

fn wake(me: &ActorRef<ElectionMsg>, after: Duration) -> AbortHandle {
    me.send_after(after, || ElectionMsg::LookAtLine).abort_handle()
}
