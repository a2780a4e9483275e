//! Whose letters are heard.

use crate::{
    error::Failure,
    link::{Again, Link},
    mail,
};
use leasehold_core::{Envelope, Inbox, ReplicaId};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

#[derive(Debug, Default)]
pub(super) struct Inboxes {
    open: Vec<Reader>,
    /// For whom there may be letters.
    unread: BTreeSet<ReplicaId>,
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

    /// Fetches what waits. After a failure it is to be tried again.
    pub(super) async fn read(&mut self, link: &Link) -> Result<(), Failure> {
        let mut done = Ok(());
        for me in std::mem::take(&mut self.unread) {
            let Some(slot) = self.slot(&me) else { continue };
            match drain(link, &me, &slot).await {
                Ok(()) => {}
                Err(failure) => {
                    self.unread.insert(me);
                    done = Err(failure);
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

async fn drain(link: &Link, me: &ReplicaId, slot: &mpsc::Sender<Envelope>) -> Result<(), Failure> {
    let age = mail::age();
    loop {
        // What was taken and never arrived is lost: letters come at most once.
        let rows = link.ask(&link.texts().drain, &mail::drain(&me.as_str(), &age), Again::May).await?;
        // A full inbox loses letters: a slow reader must not cost memory.
        mail::read(&rows, me).into_iter().for_each(|letter| _ = slot.try_send(letter));
        if i32::try_from(rows.len()).is_ok_and(|taken| taken < mail::PORTION) {
            return Ok(());
        }
    }
}
