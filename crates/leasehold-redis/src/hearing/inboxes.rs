//! Whose letters are heard.

use crate::{error::Failure, link::Link, mail};
use leasehold_core::{Envelope, Inbox, ReplicaId, StoreErrorKind, Verb};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;

#[derive(Debug, Default)]
pub(super) struct Inboxes {
    open: Vec<Reader>,
    /// For whom there may be letters.
    unread: BTreeSet<ReplicaId>,
    /// Whose letters could not be read, for they are damaged.
    damaged: BTreeMap<ReplicaId, Failure>,
}

#[derive(Debug)]
struct Reader {
    me: ReplicaId,
    channel: String,
    slot: mpsc::Sender<Envelope>,
}

impl Inboxes {
    pub(super) fn open(&mut self, me: ReplicaId, channel: String) -> Inbox {
        let (slot, inbox) = Inbox::open();
        self.unread.insert(me.clone());
        self.open.push(Reader { me, channel, slot });
        inbox
    }

    /// Forgets those that nobody reads any more; whether there were any.
    pub(super) fn sweep(&mut self) -> bool {
        let before = self.open.len();
        self.open.retain(|reader| !reader.slot.is_closed());
        let open = &self.open;
        self.damaged.retain(|me, _| open.iter().any(|reader| reader.me == *me));
        self.open.len() < before
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn channels(&self) -> impl Iterator<Item = &String> {
        self.open.iter().map(|reader| &reader.channel)
    }

    /// There is a letter, says this channel.
    pub(super) fn ring(&mut self, channel: &str) {
        self.unread.extend(
            self.open.iter().filter(|reader| reader.channel == channel).map(|reader| reader.me.clone()),
        );
    }

    /// There may be letters for everybody.
    pub(super) fn ring_all(&mut self) {
        self.unread.extend(self.open.iter().map(|reader| reader.me.clone()));
    }

    /// Whether what this reader has was read, or was damaged, when it was looked at last.
    pub(super) fn state_of(&self, me: &ReplicaId) -> Result<(), Failure> {
        self.damaged.get(me).map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Fetches what waits. After a failure it is to be tried again.
    pub(super) async fn read(&mut self, link: &Link) -> Result<(), Failure> {
        let mut done = Ok(());
        for me in std::mem::take(&mut self.unread) {
            let Some(slot) = self.slot(&me) else { continue };
            self.damaged.remove(&me);
            match mail::drain(link, &me).await {
                // A full inbox loses letters: a slow reader must not cost memory.
                Ok(letters) => letters.into_iter().for_each(|letter| _ = slot.try_send(letter)),
                Err(failure) => {
                    let error = failure.fault.clone().told(link.address(), Verb::Inbox, None);
                    if matches!(error.kind(), StoreErrorKind::Corrupt { .. }) {
                        // To look again would find the same. Letters only speed things up.
                        tracing::warn!(replica = %me, %error, "its letters cannot be read");
                        self.damaged.insert(me, failure);
                    } else {
                        self.unread.insert(me);
                        done = Err(failure);
                    }
                }
            }
        }
        done
    }

    /// The newest inbox of a reader.
    fn slot(&self, me: &ReplicaId) -> Option<mpsc::Sender<Envelope>> {
        let reader = self.open.iter().rev().find(|reader| reader.me == *me && !reader.slot.is_closed())?;
        Some(reader.slot.clone())
    }
}
