//! Whose letters are heard.

use crate::{error::Failure, link::Link, mail};
use leasehold_core::{Envelope, Inbox, ReplicaId};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

#[derive(Debug, Default)]
pub(super) struct Inboxes {
    open: Vec<(ReplicaId, mpsc::Sender<Envelope>)>,
}

impl Inboxes {
    pub(super) fn open(&mut self, me: ReplicaId) -> Inbox {
        let (slot, inbox) = Inbox::open();
        self.open.push((me, slot));
        inbox
    }

    /// Forgets those that nobody reads any more.
    pub(super) fn sweep(&mut self) {
        self.open.retain(|(_, slot)| !slot.is_closed());
    }

    pub(super) fn channels<'a>(&'a self, link: &'a Link) -> impl Iterator<Item = String> + 'a {
        self.open.iter().map(|(me, _)| link.keys().mail(me))
    }

    /// Fetches what waits for everybody.
    pub(super) async fn fetch_all(&self, link: &Link) -> Result<(), Failure> {
        let readers: BTreeSet<&ReplicaId> = self.open.iter().map(|(me, _)| me).collect();
        for me in readers {
            self.deliver(me, mail::drain(link, me).await?);
        }
        Ok(())
    }

    /// Fetches what waits for the reader of a channel; false if it is none of ours.
    pub(super) async fn fetch(&self, link: &Link, channel: &str) -> Result<bool, Failure> {
        let Some((me, _)) = self.open.iter().find(|(me, _)| link.keys().mail(me) == channel) else {
            return Ok(false);
        };
        self.deliver(me, mail::drain(link, me).await?);
        Ok(true)
    }

    /// To the newest inbox of a reader. A full one loses letters: a slow reader must not cost memory.
    fn deliver(&self, me: &ReplicaId, letters: Vec<Envelope>) {
        if let Some((_, slot)) =
            self.open.iter().rev().find(|(reader, slot)| reader == me && !slot.is_closed())
        {
            for letter in letters {
                slot.try_send(letter).ok();
            }
        }
    }
}
