//! Letters: waiting in a pile until their reader comes, then straight into the inbox.

use crate::{
    Envelope, Inbox, Moment, ReplicaId,
    mail::{MAX_LETTER_AGE, MAX_LETTERS},
};
use std::collections::{HashMap, VecDeque};
use tokio::sync::mpsc;

/// The post room of the memory store.
#[derive(Debug, Default)]
pub(super) struct Post {
    boxes: HashMap<ReplicaId, Pigeonhole>,
}

#[derive(Debug, Default)]
struct Pigeonhole {
    // Letters for which no inbox was open.
    waiting: VecDeque<(Moment, Envelope)>,
    // The newest last. Two processes may open the inbox of one replica id; a letter goes to one of them.
    open: Vec<mpsc::Sender<Envelope>>,
}

impl Post {
    /// Puts a letter into an open inbox, else on the pile. A full inbox loses it, a full pile loses its oldest.
    pub(super) fn post(&mut self, now: Moment, to: &ReplicaId, letter: &Envelope) {
        self.sweep(now);
        let hole = self.boxes.entry(to.clone()).or_default();
        match hole.open.last() {
            // Bounded on purpose: mail is best effort, and a slow reader must not cost memory.
            Some(inbox) => drop(inbox.try_send(letter.clone())),
            None => {
                if hole.waiting.len() == MAX_LETTERS {
                    hole.waiting.pop_front();
                }
                hole.waiting.push_back((now, letter.clone()));
            }
        }
    }

    /// Opens an inbox with what waits for it.
    pub(super) fn open(&mut self, now: Moment, me: &ReplicaId) -> Inbox {
        self.sweep(now);
        let (slot, inbox) = Inbox::open();
        let hole = self.boxes.entry(me.clone()).or_default();
        for (_, letter) in hole.waiting.drain(..) {
            // The pile is no larger than the inbox.
            drop(slot.try_send(letter));
        }
        hole.open.push(slot);
        inbox
    }

    /// Forgets old letters, closed inboxes, and readers of whom nothing is left.
    fn sweep(&mut self, now: Moment) {
        self.boxes.retain(|_, hole| {
            hole.open.retain(|inbox| !inbox.is_closed());
            hole.waiting.retain(|(posted, _)| now.since(*posted) < MAX_LETTER_AGE);
            !(hole.open.is_empty() && hole.waiting.is_empty())
        });
    }
}
