//! Asking the worker to end, and how long it has for that.

use super::Book;
use crate::{
    event::Happening,
    holder::{HolderMsg, Stage},
    worker::Notice,
};
use leasehold_core::TraceContext;
use ractor::RpcReplyPort;
use std::{sync::Arc, time::Duration};
use tokio::{sync::oneshot, time::Instant};

impl Book {
    pub(in crate::holder) fn last_call(&mut self, within: Duration) {
        if self.stage == Stage::Leading {
            // Whatever the worker does now, this term ends because its renewals failed.
            self.last_called = true;
            self.quiesce(within, "the end of trust".into(), "renewals fail".into());
        }
    }

    pub(in crate::holder) fn leave(
        &mut self,
        within: Duration,
        by: Arc<str>,
        reason: Arc<str>,
        trace: TraceContext,
    ) {
        if self.leaving_in == TraceContext::NONE {
            self.leaving_in = trace;
        }
        match self.stage {
            Stage::Leading => self.quiesce(within, by, reason),
            // Asked again: the shorter time counts.
            Stage::Quiescing => self.quiesce_within(within),
            Stage::Joining | Stage::Ending | Stage::Releasing => {}
        }
    }

    pub(super) fn quiesce(&mut self, within: Duration, by: Arc<str>, reason: Arc<str>) {
        self.stage = Stage::Quiescing;
        self.asked_within = within;
        self.event(Happening::Quiescing { by, reason });
        if !within.is_zero() {
            self.ask(within);
        }
        self.quiesce_within(within);
    }

    pub(super) fn quiesce_within(&mut self, within: Duration) {
        // Too far to be a moment is further than any trust lasts.
        let until = Instant::now().checked_add(within);
        if self.quiesce_until.is_some_and(|earlier| until.is_none_or(|until| earlier <= until)) {
            return;
        }
        self.quiesce_until = until;
        if within.is_zero() {
            self.quiesce_over();
        } else {
            self.arm(within, || HolderMsg::QuiesceOver);
        }
    }

    pub(super) fn ask(&mut self, within: Duration) {
        if let Some(tell) = &self.tell {
            let (port, note) = oneshot::channel();
            self.note = Some(note);
            let done: RpcReplyPort<Option<Vec<u8>>> = port.into();
            (tell.0)(Notice::Quiesce { within, done });
        }
    }

    pub(in crate::holder) fn quiesce_over(&mut self) {
        if self.stage == Stage::Quiescing {
            // Its time is over, by its own agreement: the kill shortens nothing that was promised (I4).
            self.scope.grant.end(self.ending());
            self.end_worker();
        }
    }
}
