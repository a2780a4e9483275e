//! The end of a term: what it leaves, and its release.

use super::{Book, handing};
use crate::{
    clerk::ClerkMsg,
    event::{Happening, WorkerOutcome},
    holder::{HolderMsg, Stage, TermReport},
    reply::Reply,
    telemetry,
};
use leasehold_core::{LostCause, Note, Parting, Release, Standing, TraceContext, handoff::incumbent};
use std::sync::atomic::Ordering;

impl Book {
    pub(super) fn release(&mut self) {
        self.stage = Stage::Releasing;
        self.disarm();
        if self.last_called {
            self.lose(LostCause::LastCall);
        }
        let outcome = self.outcome.get_or_insert(WorkerOutcome::Killed).clone();
        self.event(Happening::WorkerEnded { outcome });
        self.scope.grant.end(self.ending());
        if matches!(self.cause, Some(LostCause::NotHolder(_))) {
            self.finish(None);
            return;
        }
        self.left = self.note();
        self.send_release();
    }

    pub(super) fn send_release(&mut self) {
        // Also after a loss: if the claim still stands in the store it serves nobody any more. If not, this is a no-op.
        let asked = [&self.leaving_in, &self.scope.acquired_in];
        let trace = asked.into_iter().find(|t| **t != TraceContext::NONE).cloned().unwrap_or_default();
        let heir = self.handing.as_ref().and_then(|handing| handing.heir.clone());
        let parting = Parting { heir, note: self.left.clone(), trace };
        let me = self.me.clone();
        let message = ClerkMsg::Release {
            claim: self.claim().clone(),
            parting,
            within: self.settings.release_within,
            lives: self.settings.timing.ttl(),
            done: Reply::new(move |answer| drop(me.cast(HolderMsg::Released(answer)))),
        };
        if self.ctx.clerk.cast(message).is_err() {
            self.finish(None);
        }
    }

    /// The note of the worker's answer, or else the one it left in its term.
    fn note(&mut self) -> Option<Note> {
        let answered = self.note.take().and_then(|mut note| note.try_recv().ok()).flatten();
        match answered.map(|bytes| Note::new(self.claim().fence, bytes)) {
            Some(Ok(note)) => Some(note),
            Some(Err(error)) => {
                telemetry::note_dropped(self.claim(), &error);
                self.scope.take_note()
            }
            None => self.scope.take_note(),
        }
    }

    pub(in crate::holder) fn released(&mut self, answer: Release) {
        match &answer {
            Release::Released => {
                let heir = self.handing.as_ref().and_then(|handing| handing.heir.as_ref());
                let heir = heir.map(|(heir, _)| heir.clone());
                self.event(Happening::Released { heir });
            }
            // The worker finished, but the lease had gone before: what it did last was not covered by it.
            Release::NotHolder(over) => self.lose(LostCause::NotHolder(over.clone())),
            Release::Refused(_) | Release::Unknown(_) => {}
        }
        match &mut self.handing {
            // The term is over; how it went is told once it is known who took over.
            Some(handing) if handing.ending.is_none() => {
                let parted = handing::parted(&answer);
                handing.answer = Some(answer);
                if !matches!(
                    parted,
                    incumbent::Event::Parted(incumbent::Answer::Refused | incumbent::Answer::Unknown)
                ) {
                    self.told_over();
                }
                self.hand(parted);
            }
            _ => self.finish(Some(answer)),
        }
    }

    pub(super) fn finish(&mut self, release: Option<Release>) {
        let fence = self.claim().fence;
        let cause = self.told_over();
        if release.is_none() && !TermReport::is_confirmed(&cause, None) {
            // With any answer at all, the clerk knows of the release, and repeats what is open.
            self.ctx.unconfirmed.store(true, Ordering::SeqCst);
        }
        let worker = self.outcome.clone().unwrap_or(WorkerOutcome::Killed);
        let lasted = self.ctx.now().since(self.begun);
        if let Some(done) = self.done.take() {
            let handed = self.handing.as_ref().and_then(|handing| handing.ending.clone());
            done.send(TermReport { fence, worker, cause, release, lasted, handed });
        }
        self.me.stop(None);
    }

    /// Why the term is over; told now, if it was not before.
    pub(super) fn told_over(&mut self) -> LostCause {
        self.cause
            .get_or_insert_with(|| {
                let cause = LostCause::Released;
                let fence = self.scope.grant.fence();
                self.standings.tell(fence, Standing::Lost { cause: cause.clone() });
                cause
            })
            .clone()
    }
}
