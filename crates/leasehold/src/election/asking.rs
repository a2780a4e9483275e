//! What is asked of whoever leads: by its own process, and by letter.

use super::{Electing, Phase};
use crate::{
    handoff::{Asker, Handover, Told},
    holder::{HandMsg, HolderMsg},
    mailroom::MailroomMsg,
    telemetry,
};
use leasehold_core::{
    Envelope,
    handoff::{
        Ask, Letter, Message, Otherwise, Step,
        incumbent::Refusal,
        request::{self, News, Request},
        wire::{self, Unreadable},
    },
};
use std::time::Duration;

impl Electing {
    /// Somebody of this process asks for it.
    pub(super) fn put(&mut self, ask: Ask, asker: Asker) {
        let stay = if ask.otherwise == Otherwise::LeadOn { self.stays() } else { Duration::ZERO };
        self.hand_off(Ask { stay, ..ask }, asker);
    }

    pub(super) fn hand_off(&mut self, ask: Ask, mut asker: Asker) {
        let Phase::Leading(holder) = &self.phase else {
            return asker.tell(Told::Refused(Refusal::Over));
        };
        self.stepped_down |= ask.otherwise == Otherwise::Leave;
        let _ = holder.cast(HolderMsg::Hand(HandMsg::Asked { ask: Box::new(ask), asker }));
    }

    /// Whether to bid at once.
    pub(super) fn letter(&mut self, envelope: Envelope) -> bool {
        if &*envelope.kind == request::ASK {
            match request::open(&envelope) {
                Ok(request) => self.requested(envelope, request),
                Err(why) => telemetry::letter_unreadable(&envelope, &why),
            }
            return false;
        }
        match wire::open(&envelope) {
            Ok(letter) => self.read(envelope, letter),
            Err(Unreadable::NotOurs) => {
                telemetry::letter_ignored(&envelope.kind, &envelope.from);
                false
            }
            Err(why) => {
                telemetry::letter_unreadable(&envelope, &why);
                false
            }
        }
    }

    fn read(&mut self, envelope: Envelope, letter: Letter) -> bool {
        let from = envelope.from;
        match letter.message {
            Message::Propose { .. } | Message::Yours | Message::Abort => match self.phase {
                // Whoever leads has nothing to take over: it is late, or strange.
                Phase::Leading(_) => false,
                Phase::Campaigning(_) | Phase::Resting => self.succession.letter(from, letter),
            },
            _ => {
                if let Phase::Leading(holder) = &self.phase {
                    let _ = holder.cast(HolderMsg::Hand(HandMsg::Letter { from, letter }));
                }
                false
            }
        }
    }

    /// Somebody asks by letter, and is told by letter how it goes.
    fn requested(&mut self, envelope: Envelope, request: Request) {
        let Request { id, lease, to, within, reason, trace } = request;
        let (ctx, asker, by) = (self.args.ctx.clone(), envelope.from.clone(), envelope.from.as_str().into());
        let traced = trace.clone();
        let write = move |news: News| {
            let envelope = request::seal_news(&news, &lease, &ctx.replica, &traced);
            let _ = ctx.mailroom.cast(MailroomMsg::Post { to: asker.clone(), envelope });
        };
        let asker = Asker::new(id, move |told| {
            write(match told {
                Told::Refused(why) => request::refusal(id, &why.to_string()),
                Told::Step { step, elapsed } => News::of(id, step, elapsed, None),
                Told::Ended(Handover { ending, took, gap, .. }) => {
                    News::of(id, &Step::Ended(ending.clone()), *took, *gap)
                }
            });
        });
        let (otherwise, stay) = (Otherwise::LeadOn, self.stays());
        self.hand_off(Ask { to, within, otherwise, stay, by, reason, trace }, asker);
    }
}
